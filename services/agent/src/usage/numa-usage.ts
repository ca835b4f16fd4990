import { listNumaIds, numaPath } from "../facts/numa.ts";
import type { Machine } from "../machine/machine.ts";
import { parseCpuList, parseFields, parseKibibytes } from "../machine/parse-text.ts";
import { busyPercent, type CpuTimes, parseProcessorTimes } from "./cpu-usage.ts";
import type { NumaReading, SpaceUsage } from "./machine-usage.ts";

/** Measures NUMA nodes between one call and the next. */
export type NumaMeter = () => Promise<readonly NumaReading[]>;

/**
 * Create a meter. Its first call reports no CPU usage. On a machine with a single NUMA node, a call only lists one
 * directory.
 */
export function createNumaMeter(machine: Machine): NumaMeter {
  let before: ReadonlyMap<number, CpuTimes> = new Map();
  return async () => {
    const ids = await listNumaIds(machine);
    if (ids.length < 2) return [];
    const [stat, ...nodes] = await Promise.all([
      machine.readText("/proc/stat"),
      ...ids.map(async (id) => {
        const [cpus, meminfo] = await Promise.all([
          machine.readText(numaPath(id, "cpulist")),
          machine.readText(numaPath(id, "meminfo")),
        ]);
        return { id, cpus: parseCpuList(cpus ?? ""), memory: parseNodeUsage(meminfo ?? "") };
      }),
    ]);
    const now = parseProcessorTimes(stat ?? "");
    const readings = nodes
      .filter(({ cpus, memory }) => cpus.length > 0 || (memory?.totalBytes ?? 0) > 0)
      .map(({ id, cpus, memory }) => ({ id, cpuPercent: busyShare(cpus, before, now), memory }));
    before = now;
    return readings.length < 2 ? [] : readings;
  };
}

/**
 * Calculate the used memory from a NUMA node's meminfo. This file has no MemAvailable, so the reclaimable memory is
 * estimated from the parts that MemAvailable consists of: file pages and reclaimable slabs.
 */
export function parseNodeUsage(text: string): SpaceUsage | undefined {
  const fields = parseFields(text.replace(/^Node \d+ /gm, ""));
  const bytes = (name: string) => parseKibibytes(fields.get(name));
  const totalBytes = bytes("MemTotal");
  const free = bytes("MemFree");
  if (totalBytes === undefined || free === undefined) return undefined;
  const filePages = (bytes("Active(file)") ?? 0) + (bytes("Inactive(file)") ?? 0);
  const slabs = bytes("KReclaimable") ?? bytes("SReclaimable") ?? 0;
  return { usedBytes: Math.max(0, totalBytes - free - filePages - slabs), totalBytes };
}

/** The busy share of the processors that are in both readings; undefined if there are none. */
function busyShare(
  cpus: readonly number[],
  before: ReadonlyMap<number, CpuTimes>,
  now: ReadonlyMap<number, CpuTimes>,
): number | undefined {
  let earlier: CpuTimes = { busy: 0, total: 0 };
  let later = earlier;
  for (const cpu of cpus) {
    const [from, to] = [before.get(cpu), now.get(cpu)];
    if (from === undefined || to === undefined) continue;
    earlier = { busy: earlier.busy + from.busy, total: earlier.total + from.total };
    later = { busy: later.busy + to.busy, total: later.total + to.total };
  }
  return busyPercent(earlier, later);
}
