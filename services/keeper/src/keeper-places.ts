import { createHash } from "node:crypto";
import { chmod, lstat, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { errorCode, makeDirectory, StartError } from "@rollcall/process";

/** The paths that a keeper uses. */
export interface KeeperPlaces {
  /** A name that is unique to the state directory. It is also the name of the keeper's cgroups. */
  readonly name: string;
  /**
   * Only the keeper's user can enter this directory. It contains records, output, and the socket unless that is in the
   * agent's directory.
   */
  readonly directory: string;
  /** The socket that the agent connects to. */
  readonly socket: string;
  /** The parent of the executions' own directories. Other users must be able to reach it. */
  readonly scratch: string;
  /** Whether the scratch directory is temporary. The system may then remove its files. */
  readonly isScratchTemporary: boolean;
}

/** The maximum length of a path in sockaddr_un, without the final zero byte. */
const MOST_SOCKET_BYTES = 107;

/** Where root's keepers create the directories of executions if other users cannot enter the state directory. */
const SYSTEM_SCRATCH = "/var/lib/rollcall-work";

/**
 * Determine the paths of a keeper, and create the directories that other users pass through.
 *
 * @param own the keeper's own directory if it is a separate service; the agent's user cannot write there. Null if the
 *   keeper runs as the agent's user, with a directory in the agent's state directory.
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
  if (Buffer.byteLength(join(directory, "socket")) > MOST_SOCKET_BYTES) throw new StartError(`path ${own} is too long`);
  for (const path of [own, scratch]) {
    await makeOwn(path, 0o711);
    await chmod(path, 0o711);
  }
  return { name, directory, socket, scratch, isScratchTemporary: false };
}

/** The socket of a state directory's keeper. `own` has the same meaning as in keeperPlaces(). */
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

/**
 * Choose the scratch directory: next to the state directory if the users of executions can pass through there, else
 * below a system directory.
 */
async function scratchDirectory(
  state: string,
  name: string,
): Promise<Pick<KeeperPlaces, "scratch" | "isScratchTemporary">> {
  // Stay next to the state directory if the keeper is not root, because only root runs executions as other users.
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
    // Ignore these errors. They happen, for example, in a container with a read-only root file system.
    if (!["EROFS", "EACCES", "EPERM"].includes(errorCode(error) ?? "")) throw error;
  }
  const temporary = join(tmpdir(), `rollcall-work-0-${name}`);
  await makeOwn(temporary, 0o711);
  return { scratch: temporary, isScratchTemporary: true };
}

/** Whether all users can pass through a directory and its parents. */
async function letsThrough(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  if (found === null || (found.mode & 0o001) === 0) return false;
  const parent = dirname(path);
  return parent === path || letsThrough(parent);
}

/** Create a directory, closed to other users, at the first of these paths that allows it. */
export async function firstOwn([path = "", ...others]: readonly string[]): Promise<string> {
  try {
    await makeOwn(path, 0o700);
    return path;
  } catch (error) {
    // Try the next path after these errors. They happen, for example, in a container with a read-only root file system.
    if (others.length === 0 || !["EROFS", "EACCES", "EPERM"].includes(errorCode(error) ?? "")) throw error;
    return firstOwn(others);
  }
}

/** Create a directory where any user can create one. An existing directory must belong to this user. */
export async function makeOwn(path: string, mode: number): Promise<void> {
  await makeDirectory(path, mode);
  const found = await lstat(path);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    throw new StartError(`${path} belongs to another user: remove it`);
  }
}
