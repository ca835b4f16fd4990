import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";
import { errorCode } from "@rollcall/process";
import { PROCESS_ENDED } from "./process-name.ts";

const run = promisify(execFile);
const LIMIT_MS = 10_000;
/**
 * PROCESS_ENDED, plus the error codes for files of another user's process. A keeper that is not root cannot read
 * these files.
 */
const NOT_READABLE: ReadonlySet<string> = new Set([...PROCESS_ENDED, "EACCES", "EPERM"]);

/** The user ids of all running processes. Rejects when the user id of a process cannot be read. */
export async function userIdsInUse(): Promise<ReadonlySet<number>> {
  const found = await Promise.all((await processIds()).map(userOf));
  return new Set(found.filter((uid) => uid !== null));
}

export async function processesOfUser(uid: number): Promise<readonly number[]> {
  return select(async (pid) => (await userOf(pid)) === uid);
}

/** The processes in the PID namespace of a process. */
export async function otherProcesses(pid: number): Promise<readonly number[]> {
  const space = await namespaceOf(pid);
  return space === null ? [] : select(async (other) => (await namespaceOf(other)) === space);
}

/** The processes of the execution with this directory, found by their environment. */
export async function processesOfExecution(home: string): Promise<readonly number[]> {
  const mark = `ROLLCALL_HOME=${home}`;
  return select(async (pid) => {
    const text = await readFile(`/proc/${pid}/environ`, "utf8").catch((error: unknown) => absent(error, ""));
    return text.split("\0").includes(mark);
  });
}

/**
 * Kill all processes of a user. All of them must belong to one execution. The kernel kills them in one step, so
 * that no fork escapes.
 */
export async function killUser(uid: number): Promise<void> {
  if (uid <= 0) throw new Error("refusing to kill all processes of root");
  const words = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "sh", "-c", "kill -KILL -1"];
  // Ignore errors, because the command fails when there is no process to kill.
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

/** The real user id of a running process; null if it has ended. */
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

/** Return the value if the error means that the file does not exist or cannot be read; otherwise throw the error. */
function absent<T>(error: unknown, value: T): T {
  if (NOT_READABLE.has(errorCode(error) ?? "")) return value;
  throw error;
}
