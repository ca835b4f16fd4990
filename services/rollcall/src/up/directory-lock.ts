import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory, processStart } from "@rollcall/process";

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

/**
 * Claim a state directory for the agent of this process: two agents with one identity would take the session from each
 * other for ever. Answers the function that gives it back. A holder that is gone, however it ended, holds nothing.
 * Throws AgentRunningError.
 */
export async function lockStateDirectory(stateDirectory: string, pid: number): Promise<() => Promise<void>> {
  await makeDirectory(stateDirectory, 0o700);
  const running = await runningAgent(stateDirectory);
  if (running !== null && running !== pid) throw new AgentRunningError(stateDirectory, running);
  const file = join(stateDirectory, LOCK_FILE);
  const draft = `${file}.${pid}`;
  const holder: Holder = { pid, started: (await processStart(pid)) ?? "" };
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
  return (await processStart(holder.pid)) === holder.started ? holder.pid : null;
}

async function readHolder(file: string): Promise<Holder | null> {
  try {
    const value: unknown = JSON.parse(await readFile(file, "utf8"));
    return isHolder(value) ? value : null;
  } catch {
    // Not there, or cut short by a crash: it is free.
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
