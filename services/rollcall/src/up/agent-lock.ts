import { execFile } from "node:child_process";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeDirectory } from "@rollcall/runtime";

/** Another agent works with the same state directory. */
export class AgentRunningError extends Error {
  override readonly name = "AgentRunningError";
  /** Its process id. */
  readonly pid: number;

  constructor(stateDirectory: string, pid: number) {
    super(`an agent of ${stateDirectory} runs already, as process ${pid}`);
    this.pid = pid;
  }
}

interface Holder {
  readonly pid: number;
  /** When that process began, as the system tells it: process ids are used again. */
  readonly started: string;
}

const LOCK_FILE = "agent.pid";
const run = promisify(execFile);

/**
 * Claim a state directory for the agent of this process: two agents with one identity would take the session from each other for ever.
 * Answers the function that gives it back. A holder that is gone, however it ended, holds nothing. Throws AgentRunningError.
 */
export async function lockStateDirectory(
  stateDirectory: string,
  pid: number,
): Promise<() => Promise<void>> {
  await makeDirectory(stateDirectory, 0o700);
  const running = await runningAgent(stateDirectory);
  if (running !== null && running !== pid) throw new AgentRunningError(stateDirectory, running);
  const file = join(stateDirectory, LOCK_FILE);
  const draft = `${file}.${pid}`;
  const holder: Holder = { pid, started: (await startOf(pid)) ?? "" };
  await writeFile(draft, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
  await rename(draft, file);
  // Of two that came at once the later rename stays; the earlier one finds that here.
  const winner = await readHolder(file);
  if (winner !== null && winner.pid !== pid) {
    throw new AgentRunningError(stateDirectory, winner.pid);
  }
  return () => rm(file, { force: true });
}

/** The process id of the agent that works with this state directory; null when there is none. */
export async function runningAgent(stateDirectory: string): Promise<number | null> {
  const holder = await readHolder(join(stateDirectory, LOCK_FILE));
  if (holder === null) return null;
  return (await startOf(holder.pid)) === holder.started ? holder.pid : null;
}

async function readHolder(file: string): Promise<Holder | null> {
  try {
    const value: unknown = JSON.parse(await readFile(file, "utf8"));
    return isHolder(value) ? value : null;
  } catch {
    // Not there, or cut short by a crash: nobody holds it.
    return null;
  }
}

/** When a process began, in whatever form the system has; null when it does not run. */
async function startOf(pid: number): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  // The name of the program, in brackets, may hold anything; what follows the last bracket does not.
  if (stat !== null) return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  try {
    const { stdout } = await run("ps", ["-o", "lstart=", "-p", String(pid)]);
    return stdout.trim() || null;
  } catch {
    // ps ends with 1 when there is no such process.
    return null;
  }
}

function isHolder(value: unknown): value is Holder {
  return (
    typeof value === "object" &&
    value !== null &&
    "pid" in value &&
    typeof value.pid === "number" &&
    "started" in value &&
    typeof value.started === "string"
  );
}
