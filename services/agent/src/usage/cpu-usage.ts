import { cpus } from "node:os";
import { type ContainerLimits, readContainerLimits } from "../machine/container-limits.ts";
import type { Machine } from "../machine/machine.ts";
import { parseCount } from "../machine/parse-text.ts";

/**
 * CPU time since an arbitrary start. Only the difference between two readings is meaningful; units cancel out.
 */
export interface CpuTimes {
  readonly busy: number;
  readonly total: number;
}

/** Measures the share of CPU time between one call and the next. */
export type CpuMeter = () => Promise<number | undefined>;

/** Create a meter. Its first call has nothing to compare with and returns `undefined`. */
export function createCpuMeter(machine: Machine, nowMs: () => number): CpuMeter {
  let before: CpuTimes | undefined;
  return async () => {
    const now = await readCpuTimes(machine, nowMs);
    const percent = before && now && busyPercent(before, now);
    before = now;
    return percent;
  };
}

/**
 * The busy share of the time between two readings, or `undefined` if no time passed (or a counter was reset).
 */
export function busyPercent(before: CpuTimes, now: CpuTimes): number | undefined {
  const total = now.total - before.total;
  if (total <= 0) return undefined;
  return Math.min(100, Math.max(0, (100 * (now.busy - before.busy)) / total));
}

/**
 * Parse the first line of /proc/stat. Waiting for a disk counts as idle; time stolen by a hypervisor counts as
 * busy.
 */
export function parseProcStat(text: string): CpuTimes | undefined {
  const [, rest] = /^cpu\s+(.+)$/m.exec(text) ?? [];
  return rest === undefined ? undefined : parseTimes(rest);
}

/** Parse the following lines of /proc/stat: the times of each logical processor, keyed by its number. */
export function parseProcessorTimes(text: string): ReadonlyMap<number, CpuTimes> {
  const times = new Map<number, CpuTimes>();
  for (const [, cpu, rest] of text.matchAll(/^cpu(\d{1,5})\s+(.+)$/gm)) {
    times.set(Number(cpu), parseTimes(rest ?? ""));
  }
  return times;
}

function parseTimes(columns: string): CpuTimes {
  // Leave out the last two columns, guest and guest_nice, because they are already included in user and nice.
  const times = columns
    .split(/\s+/)
    .slice(0, 8)
    .map((time) => parseCount(time) ?? 0);
  const total = times.reduce((sum, time) => sum + time, 0);
  const idle = (times[3] ?? 0) + (times[4] ?? 0);
  return { busy: total - idle, total };
}

/** The CPU time in microseconds that a control group has used, from its cpu.stat. */
export function parseGroupCpuMicros(text: string): number | undefined {
  return parseCount(/^usage_usec (\d+)$/m.exec(text)?.[1]);
}

/**
 * Like parseGroupCpuMicros(), for version 1, whose cpuacct.usage is in nanoseconds and exceeds the range of
 * parseCount().
 */
function olderGroupCpuMicros(text: string): number | undefined {
  return /^\d{1,19}$/.test(text.trim()) ? Math.floor(Number(text) / 1_000) : undefined;
}

async function readCpuTimes(machine: Machine, nowMs: () => number): Promise<CpuTimes | undefined> {
  if (machine.system.platform !== "linux") return nodeCpuTimes();
  const limits = await readContainerLimits(machine);
  // Return undefined if the container's limit is unknown, because the container's usage cannot be calculated
  // without the limit.
  if (limits.cpuUnknown !== undefined) return undefined;
  const ofGroup = await readGroupTimes(machine, limits, nowMs);
  return ofGroup ?? parseProcStat((await machine.readText("/proc/stat")) ?? "");
}

/**
 * Read the CPU time that the container has used and could have used. Inside a container, the load of the whole
 * machine means little.
 */
async function readGroupTimes(
  machine: Machine,
  { cpus: share, cpuGroup }: ContainerLimits,
  nowMs: () => number,
): Promise<CpuTimes | undefined> {
  if (share === undefined || cpuGroup === undefined || share >= machine.system.parallelism()) {
    return undefined;
  }
  const micros =
    parseGroupCpuMicros((await machine.readText(`${cpuGroup}/cpu.stat`)) ?? "") ??
    olderGroupCpuMicros((await machine.readText(`${cpuGroup}/cpuacct.usage`)) ?? "");
  return micros === undefined ? undefined : { busy: micros, total: nowMs() * 1000 * share };
}

function nodeCpuTimes(): CpuTimes {
  let busy = 0;
  let total = 0;
  for (const { times } of cpus()) {
    const worked = times.user + times.nice + times.sys + times.irq;
    busy += worked;
    total += worked + times.idle;
  }
  return { busy, total };
}
