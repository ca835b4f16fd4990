import { createReadStream } from "node:fs";
import { readdir, readlink } from "node:fs/promises";
import { createInterface } from "node:readline";
import { errorCode } from "@rollcall/process";

/**
 * The owner of the socket that listens on a port: the given processes, others, or unknown. `why` is
 * human-readable.
 */
export type PortOwner =
  | { readonly kind: "own" }
  | { readonly kind: "other" }
  | { readonly kind: "unknown"; readonly why: string };

/** The /proc files to read; tests use others. */
export interface SocketFiles {
  /** The directory to read instead of /proc. */
  readonly proc: string;
}

const SYSTEM: SocketFiles = { proc: "/proc" };

/**
 * Maximum number of descriptors to check. With more, the result is unknown, because a check must not slow the
 * machine down.
 */
const MOST_DESCRIPTORS = 200_000;
const AT_A_TIME = 64;

/** State of a listening socket in /proc/net/tcp. */
const LISTENS = "0A";
const LOOPBACK_HEX = "0100007F";
const MAPPED_LOOPBACK_HEX = `0000000000000000FFFF0000${LOOPBACK_HEX}`;
const ANY_HEX = "00000000";

/**
 * Find out whether the sockets that accept connections to 127.0.0.1:port belong to the given processes. Several
 * sockets can share the port. All of them must belong to these processes, since any of them may accept the next
 * connection.
 */
export async function ownerOfPort(
  port: number,
  processes: readonly number[],
  { proc }: SocketFiles = SYSTEM,
): Promise<PortOwner> {
  let wanted: ReadonlySet<string>;
  try {
    wanted = await listeningOn(port, proc);
  } catch (error) {
    return unknown(`the sockets of this machine cannot be read: ${errorCode(error) ?? String(error)}`);
  }
  // The result is unknown, because the socket was closed a moment ago, or the system hides the sockets of other
  // users.
  if (wanted.size === 0) return unknown(`no socket that listens on port ${port} can be found`);
  const left = new Set(wanted);
  let unreadable = 0;
  let seen = 0;
  for (const pid of processes) {
    const folder = `${proc}/${pid}/fd`;
    let names: readonly string[];
    try {
      names = await readdir(folder);
    } catch (error) {
      if (errorCode(error) !== "ENOENT" && errorCode(error) !== "ESRCH") unreadable += 1;
      continue;
    }
    let isHidden = false;
    for (let from = 0; from < names.length; from += AT_A_TIME) {
      const some = names.slice(from, from + AT_A_TIME);
      const links = await Promise.all(some.map((name) => linkOf(`${folder}/${name}`)));
      for (const link of links) {
        if (link === null) isHidden = true;
        else left.delete(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? "");
      }
      if (left.size === 0) return { kind: "own" };
      seen += some.length;
      if (seen > MOST_DESCRIPTORS) return unknown(`its processes have more than ${MOST_DESCRIPTORS} open files`);
    }
    if (isHidden) unreadable += 1;
  }
  if (unreadable > 0) return unknown(`the open files of ${unreadable} of its processes cannot be read`);
  return { kind: "other" };
}

/**
 * The target of a descriptor's link; empty if the descriptor was closed in the meantime, null if this process may
 * not read it.
 */
async function linkOf(path: string): Promise<string | null> {
  try {
    return await readlink(path);
  } catch (error) {
    return errorCode(error) === "ENOENT" || errorCode(error) === "ESRCH" ? "" : null;
  }
}

function unknown(why: string): PortOwner {
  return { kind: "unknown", why };
}

/**
 * The inodes of the sockets that accept connections to 127.0.0.1:port. The sockets with the most specific address
 * win.
 */
async function listeningOn(port: number, proc: string): Promise<ReadonlySet<string>> {
  const fourth = await listeners(`${proc}/self/net/tcp`, port);
  for (const address of [LOOPBACK_HEX, ANY_HEX]) {
    const inodes = fourth.get(address);
    if (inodes !== undefined) return inodes;
  }
  // Ignore a missing file: the machine has no IPv6.
  const sixth = await listeners(`${proc}/self/net/tcp6`, port).catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return new Map<string, ReadonlySet<string>>();
    throw error;
  });
  return sixth.get(MAPPED_LOOPBACK_HEX) ?? sixth.get(ANY_HEX.repeat(4)) ?? new Set();
}

/** Inodes of the sockets that listen on a port, keyed by address in the kernel's hexadecimal form. */
async function listeners(file: string, port: number): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const found = new Map<string, Set<string>>();
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const stream = createReadStream(file);
  const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
  // Listen for errors of the stream, because readline does not report them.
  const failed = new Promise<never>((_, reject) => stream.once("error", reject));
  failed.catch(() => {});
  const read = (async () => {
    for await (const line of lines) {
      const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/ +/);
      const [address = "", itsPort] = local.split(":");
      if (state !== LISTENS) {
        // Stop early. Linux lists listening sockets first, and on a machine with 100,000 connections, megabytes
        // follow.
        if (found.size > 0) break;
        continue;
      }
      if (itsPort !== hex) continue;
      const inodes = found.get(address) ?? new Set();
      inodes.add(inode);
      found.set(address, inodes);
    }
    return found;
  })();
  try {
    return await Promise.race([read, failed]);
  } finally {
    lines.close();
    stream.destroy();
  }
}
