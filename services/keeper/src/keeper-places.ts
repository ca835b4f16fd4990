import { createHash } from "node:crypto";
import { lstat, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { makeDirectory, StartError } from "@rollcall/process";

/** Where a keeper has its things. */
export interface KeeperPlaces {
  /** Of this state directory alone; the name of its cgroups. */
  readonly name: string;
  /** What only the keeper's user can enter: its socket, its records, the output. */
  readonly directory: string;
  readonly socket: string;
  /** Where executions have directories of their own: other users must get there. */
  readonly scratch: string;
}

/** What sockaddr_un holds, less its end. */
const MOST_SOCKET_BYTES = 107;

/**
 * Find the places of the keeper of a state directory, and make those that other users pass through. The directories of
 * executions lie beside the state directory, where its parents let other users through, else below the one for
 * temporary files.
 */
export async function keeperPlaces(stateDirectory: string): Promise<KeeperPlaces> {
  const state = resolve(stateDirectory);
  const name = createHash("sha256").update(state).digest("hex").slice(0, 12);
  const directory = join(state, "keeper");
  return { name, directory, socket: socketPath(state, name), scratch: await scratchDirectory(state, name) };
}

/** Where the keeper of a state directory listens. */
export function keeperSocket(stateDirectory: string): string {
  const state = resolve(stateDirectory);
  return socketPath(state, createHash("sha256").update(state).digest("hex").slice(0, 12));
}

function socketPath(state: string, name: string): string {
  const usual = join(state, "keeper", "socket");
  if (Buffer.byteLength(usual) <= MOST_SOCKET_BYTES) return usual;
  return join(tmpdir(), `rollcall-keeper-${process.getuid?.() ?? 0}-${name}`, "socket");
}

async function scratchDirectory(state: string, name: string): Promise<string> {
  const beside = join(dirname(state), `${basename(state)}-work`);
  if (await letsThrough(dirname(state))) {
    await makeDirectory(beside, 0o711);
    return beside;
  }
  const temporary = join(tmpdir(), `rollcall-work-${process.getuid?.() ?? 0}-${name}`);
  await makeOwn(temporary, 0o711);
  return temporary;
}

/** Whether all users may pass through a directory and those above it. */
async function letsThrough(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  if (found === null || (found.mode & 0o001) === 0) return false;
  const parent = dirname(path);
  return parent === path || letsThrough(parent);
}

/** Make a directory where any user may make one: what is there must be this user's own. */
export async function makeOwn(path: string, mode: number): Promise<void> {
  await makeDirectory(path, mode);
  const found = await lstat(path);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    throw new StartError(`${path} belongs to another user: remove it`);
  }
}
