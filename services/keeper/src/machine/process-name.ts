import { readdir, readFile } from "node:fs/promises";
import { errorCode } from "@rollcall/process";

/** Identifies a process permanently: a process id is reused, but never with the same start time. */
export interface ProcessName {
  readonly pid: number;
  /** When the process started, in the system's ticks since boot. */
  readonly start: string;
}

/** The fields of a line of /proc/PID/stat. */
export interface ProcessStat extends ProcessName {
  readonly isZombie: boolean;
  readonly group: number;
  readonly session: number;
}

/** Parse a line of /proc/PID/stat; null if it is invalid. */
export function parseStat(line: string): ProcessStat | null {
  const pid = Number.parseInt(line, 10);
  // The program's name, in parentheses, can contain anything, so split only after the last parenthesis.
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const [state = "", , group = "", session = ""] = fields;
  const start = fields[19];
  if (!Number.isSafeInteger(pid) || pid <= 1 || start === undefined || !/^\d+$/.test(start)) return null;
  return { pid, start, isZombie: state === "Z" || state === "X", group: Number(group), session: Number(session) };
}

/** Error codes of reading the /proc files of an ended process. */
export const PROCESS_ENDED: ReadonlySet<string> = new Set(["ENOENT", "ESRCH"]);

/**
 * Whether the process runs. A zombie has ended and only waits for its parent. Rejects when this cannot be determined,
 * for example for lack of descriptors.
 */
export async function isAlive({ pid, start }: ProcessName): Promise<boolean> {
  const stat = await readStat(pid);
  return stat !== null && stat.start === start && !stat.isZombie;
}

/** All running processes of a session. */
export async function processesOfSession(session: number): Promise<readonly ProcessStat[]> {
  const names = await readdir("/proc");
  const stats = await Promise.all(names.filter((name) => /^\d+$/.test(name)).map((name) => readStat(Number(name))));
  return stats.filter((stat) => stat !== null && stat.session === session && !stat.isZombie) as readonly ProcessStat[];
}

/** The id of this boot of the machine; empty if the system has none. */
export async function readBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "")).trim();
}

async function readStat(pid: number): Promise<ProcessStat | null> {
  const line = await readFile(`/proc/${pid}/stat`, "utf8").catch((error: unknown) => {
    if (PROCESS_ENDED.has(errorCode(error) ?? "")) return null;
    throw error;
  });
  return line === null ? null : parseStat(line);
}
