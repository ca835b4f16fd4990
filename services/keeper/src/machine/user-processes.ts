import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";
import { errorCode } from "@rollcall/process";
import { PROCESS_ENDED } from "./process-name.ts";

const run = promisify(execFile);
const LIMIT_MS = 10_000;
/** The same, and of reading those of another user's process, which a keeper that is not root cannot read. */
const NOT_READABLE: ReadonlySet<string> = new Set([...PROCESS_ENDED, "EACCES", "EPERM"]);

/** The user ids of all running processes. Rejects when one cannot be read. */
export async function userIdsInUse(): Promise<ReadonlySet<number>> {
  const found = await Promise.all((await processIds()).map(userOf));
  return new Set(found.filter((uid) => uid !== null));
}

/** The processes of a user. */
export async function processesOfUser(uid: number): Promise<readonly number[]> {
  return select(async (pid) => (await userOf(pid)) === uid);
}

/** The processes that are in the PID namespace of a process. */
export async function processesBeside(pid: number): Promise<readonly number[]> {
  const space = await namespaceOf(pid);
  return space === null ? [] : select(async (other) => (await namespaceOf(other)) === space);
}

/** The processes that still have the environment of the execution whose own directory this is. */
export async function processesOfExecution(home: string): Promise<readonly number[]> {
  const mark = `ROLLCALL_HOME=${home}`;
  return select(async (pid) => {
    const text = await readFile(`/proc/${pid}/environ`, "utf8").catch((error: unknown) => absent(error, ""));
    return text.split("\0").includes(mark);
  });
}

/**
 * Kill all processes of a user, which must belong to one execution only. The kernel does this in one step, so that no
 * fork escapes.
 */
export async function killUser(uid: number): Promise<void> {
  if (uid <= 0) throw new Error("processes of root are never killed together");
  const words = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "sh", "-c", "kill -KILL -1"];
  // It fails when there is no process to kill.
  await run("setpriv", words, { timeout: LIMIT_MS }).catch(() => {});
}

async function select(test: (pid: number) => Promise<boolean>): Promise<readonly number[]> {
  const found: number[] = [];
  for (const pid of await processIds()) if (await test(pid)) found.push(pid);
  return found;
}

async function processIds(): Promise<readonly number[]> {
  return (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && name !== "1").map(Number);
}

/** The real user id of a process that runs; null for one that has ended. */
async function userOf(pid: number): Promise<number | null> {
  const text = await readFile(`/proc/${pid}/status`, "utf8").catch((error: unknown) => {
    if (PROCESS_ENDED.has(errorCode(error) ?? "")) return "";
    throw error;
  });
  if (/^State:\s+[ZX]/m.test(text)) return null;
  const [, uid] = /^Uid:\s+(\d+)/m.exec(text) ?? [];
  return uid === undefined ? null : Number(uid);
}

function namespaceOf(pid: number): Promise<string | null> {
  return readlink(`/proc/${pid}/ns/pid`).catch((error: unknown) => absent(error, null));
}

/** The value of a file that is not there or not ours to read; any other error is thrown. */
function absent<T>(error: unknown, value: T): T {
  if (NOT_READABLE.has(errorCode(error) ?? "")) return value;
  throw error;
}
