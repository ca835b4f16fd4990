import { execFile } from "node:child_process";
import { readFile, readlink, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { isErrno } from "./files.ts";
import { loopback, type Place } from "./place.ts";

/**
 * What a server writes about itself into its data directory. After a crash it may name a process that is a stranger.
 */
export interface PostmasterFile {
  readonly pid: number;
  /** Where it listens; null in its first moments. */
  readonly place: Place | null;
  /** Such as `starting`, `ready` or `stopping`; empty in its first moments. */
  readonly status: string;
}

/** Read `postmaster.pid`; null when there is none or it is not complete. */
export async function readPostmasterFile(dataDirectory: string): Promise<PostmasterFile | null> {
  let lines: string[];
  try {
    lines = (await readFile(postmasterPath(dataDirectory), "utf8")).split("\n");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
  // Pid, data directory, start time, port, socket directory, address, shared memory, status. A postmaster's pid is
  // never negative here: that would be a single-user backend, which has no port.
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (!Number.isInteger(pid) || pid <= 1 || !Number.isInteger(port)) return null;
  const [directory, address, , status] = lines.slice(4).map((line) => line.trim());
  return { pid, place: placeOf(port, directory ?? "", address ?? ""), status: status ?? "" };
}

function placeOf(port: number, directory: string, address: string): Place | null {
  if (directory !== "") return { host: directory, port };
  return address === "" ? null : loopback(port);
}

/** Remove a `postmaster.pid` that names a process which is known to be no server of this data. */
export async function removePostmasterFile(dataDirectory: string): Promise<void> {
  await rm(postmasterPath(dataDirectory), { force: true });
}

/** What can be seen of a process from outside. */
export type ProcessKind =
  /** There is no such process. */
  | "none"
  /** A Postgres server on this data: wait for it, never start a second one beside it. */
  | "postmaster"
  | "stranger";

/**
 * Tell whether a process is a Postgres server that runs on this data directory. It is only looked at, never signalled.
 */
export async function inspectProcess(pid: number, dataDirectory: string): Promise<ProcessKind> {
  const args = await commandLine(pid);
  if (args === null) return "none";
  const program = basename(args[0] ?? "");
  if (program !== "postgres" && program !== "postmaster") return "stranger";
  if (args.some((arg) => arg === dataDirectory || arg.endsWith(`=${dataDirectory}`))) {
    return "postmaster";
  }
  // Started by hand with a relative path: a postmaster works inside its data directory.
  return (await workingDirectoryOf(pid)) === dataDirectory ? "postmaster" : "stranger";
}

/** The words with which a process was started; null when there is no such process. */
export async function commandLine(pid: number): Promise<readonly string[] | null> {
  if (process.platform === "linux") {
    try {
      const text = await readFile(`/proc/${pid}/cmdline`, "utf8");
      // Empty for a thread of the kernel, and for a process that ended and was not waited for.
      return text.split("\0");
    } catch (error) {
      if (isErrno(error, "ENOENT") || isErrno(error, "ESRCH")) return null;
      throw error;
    }
  }
  try {
    const { stdout } = await promisify(execFile)("ps", ["-ww", "-o", "command=", "-p", `${pid}`]);
    return stdout.trim().split(" ");
  } catch {
    // ps fails when there is no such process.
    return null;
  }
}

async function workingDirectoryOf(pid: number): Promise<string | null> {
  try {
    return await readlink(`/proc/${pid}/cwd`);
  } catch {
    // No /proc here, or another user's process: the command line has to do.
    return null;
  }
}

function postmasterPath(dataDirectory: string): string {
  return join(dataDirectory, "postmaster.pid");
}
