import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** How the time of all processors was spent since the machine started, in ticks of the kernel. */
export interface MachineTime {
  readonly total: number;
  readonly idle: number;
  /** Time in which a processor had work, and the hypervisor ran another machine there. */
  readonly stolen: number;
}

const NO_TIME: MachineTime = { total: 0, idle: 0, stolen: 0 };

/** The time so far; all 0 where the kernel does not tell it (proc_stat(5)). */
export function readMachineTime(): MachineTime {
  try {
    return parseMachineTime(readFileSync("/proc/stat", "utf8"));
  } catch {
    return NO_TIME;
  }
}

/** Reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; guests are in user. */
export function parseMachineTime(text: string): MachineTime {
  const ticks = /^cpu +([\d ]+)$/m.exec(text)?.[1]?.trim().split(/ +/).map(Number);
  if (ticks === undefined) return NO_TIME;
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, stolen = 0] = ticks;
  return { total: user + nice + system + idle + iowait + irq + softirq + stolen, idle: idle + iowait, stolen };
}

/**
 * Says what a measurement had of the machine, so that figures of one that was lent out meanwhile are known as such.
 * For example "2 processors, 71 % busy; the host ran others for 38 % of that time".
 */
export function describeMachineTime(before: MachineTime, after: MachineTime): string {
  const processors = `${availableParallelism()} processors`;
  const total = after.total - before.total;
  if (total <= 0) return processors;
  const wanted = total - (after.idle - before.idle);
  const percent = (part: number, whole: number) => (whole <= 0 ? 0 : Math.round((100 * part) / whole));
  const stolen = percent(after.stolen - before.stolen, wanted);
  return `${processors}, ${percent(wanted, total)} % busy; the host ran others for ${stolen} % of that time`;
}
