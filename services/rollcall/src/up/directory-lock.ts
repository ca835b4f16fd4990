import { link, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, makeDirectory, processStart, StartError } from "@rollcall/process";

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

const AGENT_LOCK = "agent.pid";
const UP_LOCK = "up.pid";
const KEEPER_LOCK = "keeper.pid";

/**
 * Lock a state directory for the agent of this process: two agents with one identity would take the session from each
 * other for ever. Returns the function that unlocks it. A holder that has ended, however it ended, holds nothing.
 * Throws
 * AgentRunningError.
 */
export async function lockStateDirectory(stateDirectory: string, pid: number): Promise<() => Promise<void>> {
  return lock(stateDirectory, AGENT_LOCK, pid, (running) => new AgentRunningError(stateDirectory, running));
}

/**
 * Lock a data directory for the `up` of this process, whichever Postgres it uses: two would overwrite each other's
 * run.json and share an agent. Returns the function that unlocks it. Throws StartError.
 */
export async function lockDataDirectory(dataDirectory: string, pid: number): Promise<() => Promise<void>> {
  return lock(dataDirectory, UP_LOCK, pid, (running) => {
    const text = `rollcall up runs already in ${dataDirectory}, as process ${running}`;
    return new StartError(`${text}: stop that process, or use another --data-dir`);
  });
}

/** The process id of the `up` that works with this data directory; null when there is none. */
export async function runningUp(dataDirectory: string): Promise<number | null> {
  return runningHolder(join(dataDirectory, UP_LOCK));
}

/**
 * Lock a directory for the keeper of this process: two would start one execution twice. Returns the function that
 * unlocks it. Throws StartError.
 */
export async function lockKeeper(directory: string, pid: number): Promise<() => Promise<void>> {
  return lock(directory, KEEPER_LOCK, pid, (running) => {
    return new StartError(`a keeper of ${directory} runs already, as process ${running}`);
  });
}

/** The process id of the agent that works with this state directory; null when there is none. */
export async function runningAgent(stateDirectory: string): Promise<number | null> {
  return runningHolder(join(stateDirectory, AGENT_LOCK));
}

async function lock(
  directory: string,
  name: string,
  pid: number,
  refusal: (running: number) => Error,
): Promise<() => Promise<void>> {
  await makeDirectory(directory, 0o700);
  const file = join(directory, name);
  const draft = `${file}.${pid}`;
  const holder: Holder = { pid, started: (await processStart(pid)) ?? "" };
  try {
    await writeFile(draft, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
    // Of several that come at once, one makes the link; whole, so that none reads half a file.
    while (!(await linked(draft, file))) {
      const running = await runningHolder(file);
      if (running !== null && running !== pid) throw refusal(running);
      await rm(file, { force: true });
    }
    // Another one may have removed it together with the stale one.
    const winner = await readHolder(file);
    if (winner !== null && winner.pid !== pid) throw refusal(winner.pid);
  } finally {
    // Where it cannot be removed it could not be written, which is the error to report.
    await rm(draft, { force: true }).catch(() => {});
  }
  return async () => {
    if ((await readHolder(file))?.pid === pid) await rm(file, { force: true });
  };
}

/** Make a link; false where there is a file of that name. */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
    return false;
  }
}

async function runningHolder(file: string): Promise<number | null> {
  const holder = await readHolder(file);
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
