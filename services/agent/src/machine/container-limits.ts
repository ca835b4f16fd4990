import type { Machine } from "./machine.ts";
import { parseCount, parseCpuList } from "./parse-text.ts";

/** What control groups allow this process. Absent members are unlimited, unless a reason says that they are unknown. */
export interface ContainerLimits {
  /** CPU time a second, in CPUs; may be fractional. */
  readonly cpus: number | undefined;
  /** CPUs that the process may run on. */
  readonly cpuSet: readonly number[] | undefined;
  readonly memoryBytes: number | undefined;
  /** The group that sets the tightest memory limit, as a path below the root; it is the one to measure. */
  readonly memoryGroup: string | undefined;
  /** The group that sets the tightest CPU limit. */
  readonly cpuGroup: string | undefined;
  /** Why the CPUs or the CPU time are not known; for people. */
  readonly cpuUnknown: string | undefined;
  /** Why the memory limit is not known; for people. */
  readonly memoryUnknown: string | undefined;
}

/** A limit from one file. Without a limit and a reason, the file sets none. */
interface ReadLimit {
  readonly limit?: number;
  /** Why it is not known. */
  readonly unknown?: string;
}

interface Level extends ReadLimit {
  readonly group: string;
}

const SELF = "/proc/self/cgroup";

/** Read the limits of this process's group and of every group around it, of either version; a machine may have both. */
export async function readContainerLimits(machine: Machine): Promise<ContainerLimits> {
  const { text = "", problem } = await machine.tryText(SELF);
  const levels = (groups: readonly string[], read: (group: string) => Promise<ReadLimit>) =>
    Promise.all(groups.map(async (group): Promise<Level> => ({ group, ...(await read(group)) })));
  const read = (file: string, parse: (text: string) => number | "none" | undefined) => readLimit(machine, file, parse);
  const newer = groupPaths(text);
  const cpu = await Promise.all([
    levels(newer, (group) => read(`${group}/cpu.max`, parseCpuMax)),
    levels(olderGroupPaths(text, "cpu"), async (group) => {
      const quota = await read(`${group}/cpu.cfs_quota_us`, (one) => (one.trim() === "-1" ? "none" : parseCount(one)));
      if (quota.limit === undefined) return quota;
      const period = await read(`${group}/cpu.cfs_period_us`, (one) => parseCount(one) || undefined);
      if (period.limit !== undefined) return { limit: quota.limit / period.limit };
      return { unknown: period.unknown ?? `${group} has a quota of CPU time without a period` };
    }),
  ]);
  const memory = await Promise.all([
    levels(newer, (group) => read(`${group}/memory.max`, (one) => (one.trim() === "max" ? "none" : parseCount(one)))),
    // Without a limit it has the largest number of pages there can be, which is too long for a count.
    levels(olderGroupPaths(text, "memory"), (group) =>
      read(`${group}/memory.limit_in_bytes`, (one) => (/^\d{16,20}$/.test(one.trim()) ? "none" : parseCount(one))),
    ),
  ]);
  const byCpu = smallest(cpu.flat());
  const byMemory = smallest(memory.flat());
  const cpuSet = await readCpuSet(machine, newer, olderGroupPaths(text, "cpuset"));
  const selfUnknown = problem && `${SELF} cannot be read: ${problem}`;
  return {
    cpus: byCpu?.limit,
    cpuSet: cpuSet.cpus,
    memoryBytes: byMemory?.limit,
    memoryGroup: byMemory?.group,
    cpuGroup: byCpu?.group,
    cpuUnknown: selfUnknown ?? firstUnknown(cpu.flat()) ?? cpuSet.unknown,
    memoryUnknown: selfUnknown ?? firstUnknown(memory.flat()),
  };
}

/** Read the limit from one file. `parse` returns undefined for a text that it does not understand. */
async function readLimit(
  machine: Machine,
  file: string,
  parse: (text: string) => number | "none" | undefined,
): Promise<ReadLimit> {
  const { text, problem } = await machine.tryText(file);
  if (problem !== undefined) return { unknown: `${file} cannot be read: ${problem}` };
  if (text === undefined) return {};
  const limit = parse(text);
  if (limit === undefined) return { unknown: `${file} has no limit that is understood` };
  return limit === "none" ? {} : { limit };
}

function firstUnknown(levels: readonly Level[]): string | undefined {
  return levels.find(({ unknown }) => unknown !== undefined)?.unknown;
}

/**
 * The directories of the version 2 group named in /proc/self/cgroup and of its ancestors, innermost first.
 * Inside a container the name is `/` and the mount's root is the container's own group.
 */
export function groupPaths(procSelfCgroup: string): readonly string[] {
  const [, name] = /^0::(\/.*)$/m.exec(procSelfCgroup) ?? [];
  return name === undefined ? [] : pathsUpTo("/sys/fs/cgroup", name);
}

/**
 * The same in the hierarchy of a controller of version 1. Inside a container the name may be that on the host, of which
 * nothing but the mount's root can be seen: the container's own group.
 */
export function olderGroupPaths(procSelfCgroup: string, controller: string): readonly string[] {
  for (const [, controllers = "", name = ""] of procSelfCgroup.matchAll(/^\d+:([^:]+):(\/.*)$/gm)) {
    if (controllers.split(",").includes(controller)) {
      return pathsUpTo(`/sys/fs/cgroup/${controllers}`, name);
    }
  }
  return [];
}

function pathsUpTo(root: string, name: string): readonly string[] {
  // A group outside of the mount's root begins with `..`: only what is below the root can be read.
  const parts = name.split("/").filter((part) => part !== "" && part !== "..");
  return Array.from({ length: parts.length + 1 }, (_, dropped) =>
    [root, ...parts.slice(0, parts.length - dropped)].join("/"),
  );
}

/** What the innermost group that can be read may run on. */
async function readCpuSet(
  machine: Machine,
  newer: readonly string[],
  older: readonly string[],
): Promise<{ readonly cpus?: readonly number[]; readonly unknown?: string }> {
  const files = [
    ...newer.slice(0, 1).map((group) => `${group}/cpuset.cpus.effective`),
    ...older.map((group) => `${group}/cpuset.effective_cpus`),
  ];
  for (const file of files) {
    const { text, problem } = await machine.tryText(file);
    if (problem !== undefined) return { unknown: `${file} cannot be read: ${problem}` };
    if (!text) continue;
    const cpus = parseCpuList(text);
    return cpus.length > 0 ? { cpus } : { unknown: `${file} has no CPUs that are understood` };
  }
  return {};
}

/** CPUs allowed by a cpu.max such as `150000 100000`; "none" for `max 100000`, and undefined for anything else. */
export function parseCpuMax(text: string): number | "none" | undefined {
  const [first, second] = text.trim().split(/\s+/);
  if (first === "max") return "none";
  const [quota, period] = [parseCount(first), parseCount(second)];
  return quota !== undefined && period ? quota / period : undefined;
}

function smallest(levels: readonly Level[]): Level | undefined {
  let least: Level | undefined;
  for (const level of levels) {
    if (level.limit === undefined) continue;
    if (least?.limit === undefined || level.limit < least.limit) least = level;
  }
  return least;
}
