import type { Machine } from "./machine.ts";
import { parseCount, parseCpuList } from "./parse-text.ts";

/** What control group version 2 allows this process. Absent members are unlimited. */
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

/** Read the limits of this process's group and of every group around it. */
export async function readContainerLimits(machine: Machine): Promise<ContainerLimits> {
  const groups = groupPaths((await machine.readText("/proc/self/cgroup")) ?? "");
  const levels = await Promise.all(
    groups.map(async (group) => ({
      group,
      cpus: parseCpuMax((await machine.readText(`${group}/cpu.max`)) ?? ""),
      memoryBytes: parseCount(await machine.readText(`${group}/memory.max`)),
    })),
  );
  const innermost = groups[0];
  const cpuSet = innermost && (await machine.readText(`${innermost}/cpuset.cpus.effective`));
  const byCpu = smallest(levels, (level) => level.cpus);
  const byMemory = smallest(levels, (level) => level.memoryBytes);
  return {
    cpus: byCpu?.cpus,
    cpuSet: cpuSet ? parseCpuList(cpuSet) : undefined,
    memoryBytes: byMemory?.memoryBytes,
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
  if (name === undefined) return [];
  // A group outside of the mount's root begins with `..`: only what is below the root can be read.
  const parts = name.split("/").filter((part) => part !== "" && part !== "..");
  return Array.from({ length: parts.length + 1 }, (_, dropped) =>
    ["/sys/fs/cgroup", ...parts.slice(0, parts.length - dropped)].join("/"),
  );
}

/** CPUs allowed by a cpu.max such as `150000 100000`; `undefined` for `max 100000`. */
export function parseCpuMax(text: string): number | undefined {
  const [quota, period] = text.trim().split(/\s+/).map(parseCount);
  return quota !== undefined && period ? quota / period : undefined;
}

function smallest<T>(items: readonly T[], value: (item: T) => number | undefined): T | undefined {
  let least: T | undefined;
  for (const item of items) {
    const current = value(item);
    if (current === undefined) continue;
    if (least === undefined || current < (value(least) ?? Number.POSITIVE_INFINITY)) least = item;
  }
  return least;
}
