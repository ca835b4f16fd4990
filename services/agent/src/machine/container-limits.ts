import type { Machine } from "./machine.ts";
import { parseCount, parseCpuList } from "./parse-text.ts";

/** What control groups allow this process. Absent members are unlimited. */
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
}

interface Level {
  readonly group: string;
  readonly limit: number | undefined;
}

/** Read the limits of this process's group and of every group around it, of either version; a machine may have both. */
export async function readContainerLimits(machine: Machine): Promise<ContainerLimits> {
  const text = (await machine.readText("/proc/self/cgroup")) ?? "";
  const levels = (groups: readonly string[], read: (group: string) => Promise<Level["limit"]>) =>
    Promise.all(groups.map(async (group): Promise<Level> => ({ group, limit: await read(group) })));
  const newer = groupPaths(text);
  const count = async (file: string) => parseCount(await machine.readText(file));
  const cpu = await Promise.all([
    levels(newer, async (group) => parseCpuMax((await machine.readText(`${group}/cpu.max`)) ?? "")),
    levels(olderGroupPaths(text, "cpu"), async (group) => {
      // A quota of -1 is none.
      const quota = await count(`${group}/cpu.cfs_quota_us`);
      const period = await count(`${group}/cpu.cfs_period_us`);
      return quota !== undefined && period ? quota / period : undefined;
    }),
  ]);
  const memory = await Promise.all([
    levels(newer, (group) => count(`${group}/memory.max`)),
    // Without a limit it has the largest number of pages there can be, which is too long for a count.
    levels(olderGroupPaths(text, "memory"), (group) => count(`${group}/memory.limit_in_bytes`)),
  ]);
  const byCpu = smallest(cpu.flat());
  const byMemory = smallest(memory.flat());
  return {
    cpus: byCpu?.limit,
    cpuSet: await readCpuSet(machine, newer, olderGroupPaths(text, "cpuset")),
    memoryBytes: byMemory?.limit,
    memoryGroup: byMemory?.group,
    cpuGroup: byCpu?.group,
  };
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
): Promise<readonly number[] | undefined> {
  const files = [
    ...newer.slice(0, 1).map((group) => `${group}/cpuset.cpus.effective`),
    ...older.map((group) => `${group}/cpuset.effective_cpus`),
  ];
  for (const file of files) {
    const text = await machine.readText(file);
    if (text) return parseCpuList(text);
  }
  return undefined;
}

/** CPUs allowed by a cpu.max such as `150000 100000`; `undefined` for `max 100000`. */
export function parseCpuMax(text: string): number | undefined {
  const [quota, period] = text.trim().split(/\s+/).map(parseCount);
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
