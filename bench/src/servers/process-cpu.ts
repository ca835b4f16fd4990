import { readdirSync, readFileSync } from "node:fs";

const CLOCK_TICKS_PER_SECOND = 100; // USER_HZ, the same on every Linux that Node.js runs on.

/**
 * The CPU seconds that a process has used since it started, according to the kernel; 0 if the process no longer
 * exists. Linux only.
 */
export function cpuSecondsOf(pid: number): number {
  const fields = statOf(pid);
  return fields === null ? 0 : (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}

/** The CPU seconds of a process and its children, including children that have ended. */
export function cpuSecondsOfTree(pid: number): number {
  const fields = statOf(pid);
  if (fields === null) return 0;
  const ended = (Number(fields[13]) + Number(fields[14])) / CLOCK_TICKS_PER_SECOND;
  return childrenOf(pid).reduce((sum, child) => sum + cpuSecondsOf(child), cpuSecondsOf(pid) + ended);
}

/** Send SIGKILL to a process and its children. Linux only. */
export function killTree(pid: number): void {
  for (const victim of [pid, ...childrenOf(pid)]) {
    try {
      process.kill(victim, "SIGKILL");
    } catch {
      // Ignore the error, because the process has ended in the meantime.
    }
  }
}

function childrenOf(pid: number): readonly number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((child) => statOf(child)?.[1] === String(pid));
}

/**
 * The fields after the command's name: state, ppid, ... utime (12th), stime (13th). The name is in parentheses and
 * can contain any character. Returns null if the process no longer exists.
 */
function statOf(pid: number): readonly string[] | null {
  if (!(pid > 0)) return null;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    // Ignore the error, because the process has ended in the meantime.
    return null;
  }
}

const KIB = 1_024;

/** The resident memory of a process in bytes; 0 if the process no longer exists. Linux only. */
export function residentBytesOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * KIB;
  } catch {
    // Ignore the error, because the process has ended in the meantime.
    return 0;
  }
}
