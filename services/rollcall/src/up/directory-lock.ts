import { link, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, makeDirectory, processStart, StartError } from "@rollcall/process";

/** Another agent uses the same state directory. */
export class AgentRunningError extends Error {
  override readonly name = "AgentRunningError";
  /** The process id of the other agent. */
  readonly pid: number;

  constructor(stateDirectory: string, pid: number) {
    super(`an agent is already running for ${stateDirectory}, as process ${pid}`);
    this.pid = pid;
  }
}

interface Holder {
  readonly pid: number;
  /** When the process started, according to the system, because process ids are reused. */
  readonly started: string;
}

const AGENT_LOCK = "agent.pid";
const UP_LOCK = "up.pid";
const KEEPER_LOCK = "keeper.pid";

/**
 * Lock a state directory for the agent of this process, because two agents with one identity would take the session
 * from each other forever. Returns a function that unlocks it. The lock of a process that no longer runs is ignored.
 * Throws AgentRunningError.
 */
export async function lockStateDirectory(stateDirectory: string, pid: number): Promise<() => Promise<void>> {
  return lock(stateDirectory, AGENT_LOCK, pid, (running) => new AgentRunningError(stateDirectory, running));
}

/**
 * Lock a data directory for the `up` of this process. Only one `up` can use a directory, even if another would use a
 * different Postgres server, because both would write run.json and share an agent. Returns a function that unlocks the
 * directory. Throws StartError.
 */
export async function lockDataDirectory(dataDirectory: string, pid: number): Promise<() => Promise<void>> {
  return lock(dataDirectory, UP_LOCK, pid, (running) => {
    const text = `rollcall up is already running in ${dataDirectory}, as process ${running}`;
    return new StartError(`${text}: stop that process, or use another --data-dir`);
  });
}

/** The process id of the `up` that uses this data directory; null for none. */
export async function runningUp(dataDirectory: string): Promise<number | null> {
  return runningHolder(join(dataDirectory, UP_LOCK));
}

/**
 * Lock a directory for the keeper of this process, because two keepers would start an execution twice. Returns a
 * function that unlocks it. Throws StartError.
 */
export async function lockKeeper(directory: string, pid: number): Promise<() => Promise<void>> {
  return lock(directory, KEEPER_LOCK, pid, (running) => {
    return new StartError(`a keeper is already running in ${directory}, as process ${running}`);
  });
}

/** The process id of the agent that uses this state directory; null for none. */
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
    // Lock with a link, which only one of several concurrent processes can create. A link appears complete, so no
    // process reads half a file.
    while (!(await linked(draft, file))) {
      const running = await runningHolder(file);
      if (running !== null && running !== pid) throw refusal(running);
      await rm(file, { force: true });
    }
    // Check the lock, because a process that removed a stale lock may have removed ours by mistake, and created its
    // own.
    const winner = await readHolder(file);
    if (winner !== null && winner.pid !== pid) throw refusal(winner.pid);
  } finally {
    // Ignore errors. If the draft cannot be removed, it could not be written either, and that error is reported.
    await rm(draft, { force: true }).catch(() => {});
  }
  return async () => {
    if ((await readHolder(file))?.pid === pid) await rm(file, { force: true });
  };
}

/** Create a link; false when the name exists. */
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
    // Return null, because the file is missing or was truncated by a crash, so the lock is free.
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
