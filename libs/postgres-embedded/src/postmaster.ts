import { execFile } from "node:child_process";
import { readFile, readlink, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { errorCode } from "@rollcall/process";
import { loopback, type ServerLocation } from "./place.ts";

/** The content of a server's postmaster.pid. After a crash, the process id can belong to an unrelated process. */
export interface PostmasterFile {
  readonly pid: number;
  /** Where the server listens; null shortly after the start. */
  readonly place: ServerLocation | null;
  /** The server's status, such as `starting`, `ready` or `stopping`; empty shortly after the start. */
  readonly status: string;
}

/** Read `postmaster.pid`; null when it is missing or incomplete. */
export async function readPostmasterFile(dataDirectory: string): Promise<PostmasterFile | null> {
  let lines: string[];
  try {
    lines = (await readFile(postmasterPath(dataDirectory), "utf8")).split("\n");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
  // The lines are: pid, data directory, start time, port, socket directory, address, shared memory, status. A
  // single-user backend writes a negative pid and no port; a postmaster's pid is positive.
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (!Number.isInteger(pid) || pid <= 1 || !Number.isInteger(port)) return null;
  const [directory, address, , status] = lines.slice(4).map((line) => line.trim());
  return { pid, place: placeOf(port, directory ?? "", address ?? ""), status: status ?? "" };
}

function placeOf(port: number, directory: string, address: string): ServerLocation | null {
  if (directory !== "") return { host: directory, port };
  return address === "" ? null : loopback(port);
}

/** Remove a `postmaster.pid` whose process is known not to be a server of this data directory. */
export async function removePostmasterFile(dataDirectory: string): Promise<void> {
  await rm(postmasterPath(dataDirectory), { force: true });
}

/** The kind of process that has a process id. */
export type ProcessKind =
  /** There is no such process. */
  | "none"
  /** A Postgres server on this data directory. Wait for it, and never start a second one. */
  | "postmaster"
  | "unrelated";

/**
 * Find out whether a process is a Postgres server on this data directory. The process is only inspected, never
 * signaled.
 */
export async function inspectProcess(pid: number, dataDirectory: string): Promise<ProcessKind> {
  const args = await commandLine(pid);
  if (args === null) return "none";
  const program = basename(args[0] ?? "");
  if (program !== "postgres" && program !== "postmaster") return "unrelated";
  if (args.some((arg) => arg === dataDirectory || arg.endsWith(`=${dataDirectory}`))) {
    return "postmaster";
  }
  // A server that was started manually can have a relative path. So compare the working directory, which a
  // postmaster changes to its data directory.
  return (await workingDirectoryOf(pid)) === dataDirectory ? "postmaster" : "unrelated";
}

/** The command line of a process, split into words; null when there is no such process. */
export async function commandLine(pid: number): Promise<readonly string[] | null> {
  if (process.platform === "linux") {
    try {
      const text = await readFile(`/proc/${pid}/cmdline`, "utf8");
      // The command line is empty for a kernel thread and for a zombie.
      return text.split("\0");
    } catch (error) {
      if (errorCode(error) === "ENOENT" || errorCode(error) === "ESRCH") return null;
      throw error;
    }
  }
  try {
    const { stdout } = await promisify(execFile)("ps", ["-ww", "-o", "command=", "-p", `${pid}`]);
    return stdout.trim().split(" ");
  } catch {
    // ps fails when the process does not exist.
    return null;
  }
}

async function workingDirectoryOf(pid: number): Promise<string | null> {
  try {
    return await readlink(`/proc/${pid}/cwd`);
  } catch {
    // Return null, so that only the command line is compared: the system has no /proc, or the process belongs to
    // another user.
    return null;
  }
}

function postmasterPath(dataDirectory: string): string {
  return join(dataDirectory, "postmaster.pid");
}
