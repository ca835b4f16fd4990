import { readdirSync, readFileSync } from "node:fs";

const CLOCK_TICKS_PER_SECOND = 100; // USER_HZ, the same on every Linux that Node.js runs on.

/** CPU seconds that a process has used since it began, from the kernel's own books; 0 when it is gone. Linux only. */
export function cpuSecondsOf(pid: number): number {
  const fields = statOf(pid);
  return fields === null ? 0 : (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}

/** The same of a process and its children, together with those of them that have ended. */
export function cpuSecondsOfTree(pid: number): number {
  const fields = statOf(pid);
  if (fields === null) return 0;
  const ended = (Number(fields[13]) + Number(fields[14])) / CLOCK_TICKS_PER_SECOND;
  const children = readdirSync("/proc").filter((name) => statOf(Number(name))?.[1] === String(pid));
  return children.reduce((sum, child) => sum + cpuSecondsOf(Number(child)), cpuSecondsOf(pid) + ended);
}

/** After the command's name, which may hold anything, in parentheses: state, ppid, ... utime (12th), stime (13th). */
function statOf(pid: number): readonly string[] | null {
  if (!(pid > 0)) return null;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    // It has ended in the meantime.
    return null;
  }
}

const KIB = 1_024;

/** Resident memory of a process; 0 when it is gone. Linux only. */
export function residentBytesOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * KIB;
  } catch {
    // It has ended in the meantime.
    return 0;
  }
}
