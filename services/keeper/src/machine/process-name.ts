import { readdir, readFile } from "node:fs/promises";
import { errorCode } from "@rollcall/process";

/** A process for good: ids are used again, and a start is not. */
export interface ProcessName {
  readonly pid: number;
  /** In the system's own ticks since the boot. */
  readonly start: string;
}

/** What a line of /proc/PID/stat says. */
export interface ProcessStat extends ProcessName {
  readonly isZombie: boolean;
  readonly group: number;
  readonly session: number;
}

/** Read a line of /proc/PID/stat; null if it is not one. */
export function parseStat(line: string): ProcessStat | null {
  const pid = Number.parseInt(line, 10);
  // The name of the program, in brackets, may hold anything; what follows the last bracket does not.
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const [state = "", , group = "", session = ""] = fields;
  const start = fields[19];
  if (!Number.isSafeInteger(pid) || pid <= 1 || start === undefined || !/^\d+$/.test(start)) return null;
  return { pid, start, isZombie: state === "Z" || state === "X", group: Number(group), session: Number(session) };
}

/** Error codes of reading the /proc files of a process that has ended. */
export const PROCESS_ENDED: ReadonlySet<string> = new Set(["ENOENT", "ESRCH"]);

/**
 * Whether the process runs. A zombie has ended, and only its parent has not looked yet. Rejects when the system does
 * not say, for example for lack of descriptors.
 */
export async function isAlive({ pid, start }: ProcessName): Promise<boolean> {
  const stat = await readStat(pid);
  return stat !== null && stat.start === start && !stat.isZombie;
}

/** All processes of a session that run. */
export async function processesOfSession(session: number): Promise<readonly ProcessStat[]> {
  const names = await readdir("/proc");
  const stats = await Promise.all(names.filter((name) => /^\d+$/.test(name)).map((name) => readStat(Number(name))));
  return stats.filter((stat) => stat !== null && stat.session === session && !stat.isZombie) as readonly ProcessStat[];
}

/** The id of this boot of the machine; empty where the system has none. */
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
