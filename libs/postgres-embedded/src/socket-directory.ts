import { randomBytes } from "node:crypto";
import { chown, lstat, mkdir, mkdtemp, readFile, rm, rmdir } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorCode, replaceFile } from "@rollcall/process";
import { EmbeddedPostgresError } from "./errors.ts";
import { type ServerLocation, socketFile, socketIn } from "./place.ts";
import { inspectProcess } from "./postmaster.ts";
import type { RunAs } from "./run-as.ts";

export interface SocketDirectoryInput {
  /** The server's directory. */
  readonly dir: string;
  readonly runAs: RunAs;
  /** Parent directories to try for a short directory. Default: the system's temporary directories. */
  readonly temporary?: readonly string[];
  readonly platform?: string;
}

/** A directory for the socket, or the reason why none is possible. */
export type SocketDirectory = { readonly directory: string } | { readonly directory: null; readonly why: string };

/** The maximum length of a socket path in bytes, by platform: `sun_path` without its last byte. */
const LONGEST_PATH_BYTES: Readonly<Record<string, number>> = { linux: 107, darwin: 103 };
const REMEMBERED = "socket-directory";

/**
 * Choose and create a directory that only the server's user can enter: in the server's own directory, or in a
 * temporary directory if the path would be too long or the file system does not support sockets.
 */
export async function chooseSocketDirectory(input: SocketDirectoryInput): Promise<SocketDirectory> {
  const { dir, runAs, platform = process.platform } = input;
  const longest = LONGEST_PATH_BYTES[platform];
  if (longest === undefined) return { directory: null, why: `${platform} has no Unix sockets` };
  const reasons: string[] = [];
  const isUsable = async (directory: string): Promise<boolean> => {
    const bytes = Buffer.byteLength(socketFile(socketIn(directory)));
    const trouble =
      bytes > longest
        ? `the path of a socket in ${directory} has ${bytes} bytes; the limit is ${longest}`
        : await troubleWith(directory, runAs);
    if (trouble !== null) reasons.push(trouble);
    return trouble === null;
  };
  const own = join(dir, "socket");
  if (await isUsable(own)) return { directory: own };
  const remembered = await readFile(join(dir, REMEMBERED), "utf8").catch(() => "");
  if (remembered !== "" && (await isUsable(remembered))) return { directory: remembered };
  for (const parent of input.temporary ?? new Set([tmpdir(), "/tmp"])) {
    const made = await mkdtemp(join(parent, "rollcall-")).catch((error: unknown) => {
      reasons.push(String(error));
      return null;
    });
    if (made === null) continue;
    if (await isUsable(made)) {
      await replaceFile(join(dir, REMEMBERED), made, 0o644);
      return { directory: made };
    }
    await rmdir(made).catch(() => {});
  }
  return { directory: null, why: reasons.join("; ") };
}

/**
 * Recreate the socket's directory if it is missing. Also remove a lock file in the directory if the file's process is
 * not a server of this data directory, because Postgres refuses to start while any process has that id.
 *
 * @throws EmbeddedPostgresError when the directory belongs to another user, or others can enter it.
 */
export async function readySocketDirectory(
  place: ServerLocation,
  { dataDirectory, runAs }: { readonly dataDirectory: string; readonly runAs: RunAs },
): Promise<void> {
  const trouble = await prepare(place.host, runAs);
  if (trouble !== null) throw new EmbeddedPostgresError(trouble);
  const lockFile = `${socketFile(place)}.lock`;
  const text = await readFile(lockFile, "utf8").catch(() => "");
  const pid = Number(text.split("\n")[0]);
  if (!Number.isInteger(pid) || pid <= 1) return;
  if ((await inspectProcess(pid, dataDirectory)) === "unrelated") await rm(lockFile, { force: true });
}

async function troubleWith(directory: string, runAs: RunAs): Promise<string | null> {
  return (await prepare(directory, runAs)) ?? (await troubleBinding(directory));
}

/**
 * Create the directory, accessible only to the server's user. Returns why an existing directory is unusable; null when
 * it is usable.
 */
async function prepare(directory: string, runAs: RunAs): Promise<string | null> {
  try {
    await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
      if (errorCode(error) !== "EEXIST") throw error;
    });
    const found = await lstat(directory);
    if (!found.isDirectory()) return `${directory} is not a directory`;
    if ((found.mode & 0o077) !== 0) return `${directory} can be entered by other users`;
    const us = process.getuid?.() ?? found.uid;
    const owner = runAs.kind === "user" ? runAs.uid : us;
    if (found.uid === owner) return null;
    if (runAs.kind !== "user" || found.uid !== us) {
      return `${directory} belongs to user ${found.uid}`;
    }
    // Change the owner of the directory. It still belongs to this process, which created it above.
    await chown(directory, runAs.uid, runAs.gid);
    return null;
  } catch (error) {
    return String(error);
  }
}

/**
 * Why a socket cannot be created in the directory; null when it can. Some file systems do not support sockets, such as
 * host folders that are shared with a virtual machine.
 */
function troubleBinding(directory: string): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) => resolve(String(error)));
    // Use a name that is as long as the name of the socket.
    server.listen(join(directory, `.probe-${randomBytes(3).toString("hex")}`), () => {
      server.close(() => resolve(null));
    });
  });
}
