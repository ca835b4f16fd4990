import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const LIMIT_MS = 10_000;

/** The user ids of all processes that run. */
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

/** The processes that were started in the environment of an execution, and have kept it. */
export async function processesOfExecution(id: string): Promise<readonly number[]> {
  const mark = `ROLLCALL_EXECUTION=${id}`;
  return select(async (pid) => {
    const text = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    return text.split("\0").includes(mark);
  });
}

/**
 * Kill all processes of a user, which has to be a user of one execution alone. The kernel does it as one step, so that
 * none that forks escapes.
 */
export async function killUser(uid: number): Promise<void> {
  if (uid <= 0) throw new Error("processes of root are never killed together");
  const words = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "sh", "-c", "kill -KILL -1"];
  // It ends with a failure where there is no process to kill.
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
  const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  if (/^State:\s+[ZX]/m.test(text)) return null;
  const [, uid] = /^Uid:\s+(\d+)/m.exec(text) ?? [];
  return uid === undefined ? null : Number(uid);
}

function namespaceOf(pid: number): Promise<string | null> {
  return readlink(`/proc/${pid}/ns/pid`).catch(() => null);
}
