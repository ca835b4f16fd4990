import { createHash } from "node:crypto";
import { chmod, lstat, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { errorCode, makeDirectory, StartError } from "@rollcall/process";

/** Where a keeper has its things. */
export interface KeeperPlaces {
  /** Of this state directory alone; the name of its cgroups. */
  readonly name: string;
  /** What only the keeper's user can enter: its records, the output, and its socket where that is not the agent's. */
  readonly directory: string;
  /** Where the agent finds the keeper. */
  readonly socket: string;
  /** Where executions have directories of their own: other users must get there. */
  readonly scratch: string;
  /** Whether those are among temporary files, which the system may remove. */
  readonly isScratchTemporary: boolean;
}

/** What sockaddr_un holds, less its end. */
const MOST_SOCKET_BYTES = 107;

/** Where root's keepers have directories of executions when the state directory is closed to other users. */
const SYSTEM_SCRATCH = "/var/lib/rollcall-work";

/**
 * Find the places of the keeper of a state directory, and make those that other users pass through.
 *
 * @param own the directory of a keeper that is a service of its own, in which the agent's user can write nothing; null
 *   for one that has the agent's user, and a directory in the agent's.
 */
export async function keeperPlaces(stateDirectory: string, own: string | null = null): Promise<KeeperPlaces> {
  const state = resolve(stateDirectory);
  const name = nameOf(state);
  const socket = keeperSocket(state, own);
  if (own === null) {
    const directory = join(state, "keeper");
    return { name, directory, socket, ...(await scratchDirectory(state, name)) };
  }
  const [directory, scratch] = [join(own, "keeper"), join(own, "work")];
  if (Buffer.byteLength(join(directory, "socket")) > MOST_SOCKET_BYTES)
    throw new StartError(`${own} is too long a path`);
  for (const path of [own, scratch]) {
    await makeOwn(path, 0o711);
    await chmod(path, 0o711);
  }
  return { name, directory, socket, scratch, isScratchTemporary: false };
}

/** Where the keeper of a state directory listens. `own` is as for keeperPlaces(). */
export function keeperSocket(stateDirectory: string, own: string | null = null): string {
  if (own !== null) return join(own, "socket");
  const state = resolve(stateDirectory);
  return socketPath(state, nameOf(state));
}

function nameOf(state: string): string {
  return createHash("sha256").update(state).digest("hex").slice(0, 12);
}

function socketPath(state: string, name: string): string {
  const usual = join(state, "keeper", "socket");
  if (Buffer.byteLength(usual) <= MOST_SOCKET_BYTES) return usual;
  return join(tmpdir(), `rollcall-keeper-${process.getuid?.() ?? 0}-${name}`, "socket");
}

/** Beside the state directory, where all who must can pass; else below a directory of the system. */
async function scratchDirectory(
  state: string,
  name: string,
): Promise<Pick<KeeperPlaces, "scratch" | "isScratchTemporary">> {
  // Only root's executions are other users'.
  if (process.getuid?.() !== 0 || (await letsThrough(dirname(state)))) {
    const beside = join(dirname(state), `${basename(state)}-work`);
    await makeDirectory(beside, 0o711);
    return { scratch: beside, isScratchTemporary: false };
  }
  const scratch = join(SYSTEM_SCRATCH, name);
  try {
    for (const path of [SYSTEM_SCRATCH, scratch]) await makeOwn(path, 0o711);
    return { scratch, isScratchTemporary: false };
  } catch (error) {
    // As in a container whose root is read-only.
    if (!["EROFS", "EACCES", "EPERM"].includes(errorCode(error) ?? "")) throw error;
  }
  const temporary = join(tmpdir(), `rollcall-work-0-${name}`);
  await makeOwn(temporary, 0o711);
  return { scratch: temporary, isScratchTemporary: true };
}

/** Whether all users may pass through a directory and those above it. */
async function letsThrough(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  if (found === null || (found.mode & 0o001) === 0) return false;
  const parent = dirname(path);
  return parent === path || letsThrough(parent);
}

/** Make the first of these directories that can be made, for this user alone. */
export async function firstOwn([path = "", ...others]: readonly string[]): Promise<string> {
  try {
    await makeOwn(path, 0o700);
    return path;
  } catch (error) {
    // As in a container whose root is read-only.
    if (others.length === 0 || !["EROFS", "EACCES", "EPERM"].includes(errorCode(error) ?? "")) throw error;
    return firstOwn(others);
  }
}

/** Make a directory where any user may make one: what is there must be this user's own. */
export async function makeOwn(path: string, mode: number): Promise<void> {
  await makeDirectory(path, mode);
  const found = await lstat(path);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    throw new StartError(`${path} belongs to another user: remove it`);
  }
}
