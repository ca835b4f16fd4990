import type { Machine } from "../machine/machine.ts";
import { parseCount, parseKibibytes } from "../machine/parse-text.ts";
import type { NumaNodeFacts } from "./machine-facts.ts";

/** The directory where the kernel describes NUMA nodes. */
export const NODE_ROOT = "/sys/devices/system/node";

/** The ids of the NUMA nodes, in order. */
export async function listNumaIds(machine: Machine): Promise<readonly number[]> {
  return (await machine.listNames(NODE_ROOT))
    .flatMap((name) => parseCount(/^node(\d+)$/.exec(name)?.[1]) ?? [])
    .sort((a, b) => a - b);
}

/** The path of a NUMA node's file. */
export function numaPath(id: number, file: string): string {
  return `${NODE_ROOT}/node${id}/${file}`;
}

/** Read the NUMA nodes, ordered by id. */
export async function readNumaNodes(machine: Machine): Promise<readonly NumaNodeFacts[]> {
  const ids = await listNumaIds(machine);
  return Promise.all(
    ids.map(async (id) => {
      const [cpus, meminfo, distance] = await Promise.all([
        machine.readText(numaPath(id, "cpulist")),
        machine.readText(numaPath(id, "meminfo")),
        machine.readText(numaPath(id, "distance")),
      ]);
      return {
        id,
        cpus: cpus ?? "",
        memoryBytes: parseNodeMemory(meminfo ?? ""),
        distances: parseDistances(distance ?? ""),
      };
    }),
  );
}

/** Parse a node's memory in bytes from its meminfo, whose lines start with `Node 0 `. */
function parseNodeMemory(text: string): number | undefined {
  return parseKibibytes(/^Node \d+ MemTotal:\s*(.+)$/m.exec(text)?.[1]);
}

/** Parse the distances in a node's distance file, for example `10 21`. */
function parseDistances(text: string): readonly number[] {
  return text.split(/\s+/).flatMap((part) => parseCount(part) ?? []);
}
