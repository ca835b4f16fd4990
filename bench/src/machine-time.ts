import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** The time that all processors spent on each kind of work since the machine started, in kernel ticks. */
export interface MachineTime {
  readonly total: number;
  readonly idle: number;
  /** The time that the hypervisor gave to another machine while a processor had work. */
  readonly stolen: number;
}

const NO_TIME: MachineTime = { total: 0, idle: 0, stolen: 0 };

/** Read the times so far. All of them are 0 if the kernel does not provide them (proc_stat(5)). */
export function readMachineTime(): MachineTime {
  try {
    return parseMachineTime(readFileSync("/proc/stat", "utf8"));
  } catch {
    return NO_TIME;
  }
}

/**
 * Parses the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq and steal. The time of guests
 * is already included in user.
 */
export function parseMachineTime(text: string): MachineTime {
  const ticks = /^cpu +([\d ]+)$/m.exec(text)?.[1]?.trim().split(/ +/).map(Number);
  if (ticks === undefined) return NO_TIME;
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, stolen = 0] = ticks;
  return { total: user + nice + system + idle + iowait + irq + softirq + stolen, idle: idle + iowait, stolen };
}

/**
 * Describes the machine's load during a measurement, so that results from a shared machine can be recognized. For
 * example "2 processors, 71 % busy; the host ran others for 38 % of that time".
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
