import type { Machine } from "./machine.ts";
import { parseCount, parseCpuList } from "./parse-text.ts";

/**
 * The limits that control groups set for this process. An absent limit means unlimited, unless a reason says that it is
 * unknown.
 */
export interface ContainerLimits {
  /** CPU time per second, in CPUs; may be fractional. */
  readonly cpus: number | undefined;
  /** CPUs that the process can run on. */
  readonly cpuSet: readonly number[] | undefined;
  readonly memoryBytes: number | undefined;
  /** The group with the tightest memory limit, as a path below the root. Memory usage is measured in this group. */
  readonly memoryGroup: string | undefined;
  /** The group with the tightest CPU limit. */
  readonly cpuGroup: string | undefined;
  /** Why the CPUs or the CPU time are unknown, human-readable. */
  readonly cpuUnknown: string | undefined;
  /** Why the memory limit is unknown, human-readable. */
  readonly memoryUnknown: string | undefined;
}

/** A limit that was read from one file. If both members are absent, the file sets no limit. */
interface ReadLimit {
  readonly limit?: number;
  /** Why the limit is unknown. */
  readonly unknown?: string;
}

interface Level extends ReadLimit {
  readonly group: string;
}

const SELF = "/proc/self/cgroup";

/**
 * Read the limits of this process's group and of all its ancestors, in both versions of control groups; a machine can
 * have both.
 */
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
    // Version 1 writes "no limit" as the largest possible number of pages in bytes, which is too long for parseCount().
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

/** Read the limit from one file. `parse` returns undefined for text that it cannot parse. */
async function readLimit(
  machine: Machine,
  file: string,
  parse: (text: string) => number | "none" | undefined,
): Promise<ReadLimit> {
  const { text, problem } = await machine.tryText(file);
  if (problem !== undefined) return { unknown: `${file} cannot be read: ${problem}` };
  if (text === undefined) return {};
  const limit = parse(text);
  if (limit === undefined) return { unknown: `${file} contains no valid limit` };
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
 * Like groupPaths(), for a version 1 controller. Inside a container, the name may be the group's name on the host,
 * while the mount shows only the container's own group as its root.
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
  // Drop the `..` at the start of a group outside the mount's root, because only groups below the root can be read.
  const parts = name.split("/").filter((part) => part !== "" && part !== "..");
  return Array.from({ length: parts.length + 1 }, (_, dropped) =>
    [root, ...parts.slice(0, parts.length - dropped)].join("/"),
  );
}

/** The CPUs of the innermost readable group. */
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
    return cpus.length > 0 ? { cpus } : { unknown: `${file} contains no valid CPU list` };
  }
  return {};
}

/**
 * Parse the CPUs allowed by a cpu.max such as `150000 100000`; "none" for `max 100000`, and undefined for anything
 * else.
 */
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
