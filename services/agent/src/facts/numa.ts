import type { Machine } from "../machine/machine.ts";
import { parseCount, parseKibibytes } from "../machine/parse-text.ts";
import type { NumaNodeFacts } from "./machine-facts.ts";

const NODE_ROOT = "/sys/devices/system/node";

/** Read the NUMA nodes, by id. */
export async function readNumaNodes(machine: Machine): Promise<readonly NumaNodeFacts[]> {
  const ids = (await machine.listNames(NODE_ROOT))
    .flatMap((name) => parseCount(/^node(\d+)$/.exec(name)?.[1]) ?? [])
    .sort((a, b) => a - b);
  return Promise.all(
    ids.map(async (id) => {
      const [cpus, meminfo, distance] = await Promise.all([
        machine.readText(`${NODE_ROOT}/node${id}/cpulist`),
        machine.readText(`${NODE_ROOT}/node${id}/meminfo`),
        machine.readText(`${NODE_ROOT}/node${id}/distance`),
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

/** The memory in bytes of a node's meminfo, whose lines begin with `Node 0 `. */
function parseNodeMemory(text: string): number | undefined {
  return parseKibibytes(/^Node \d+ MemTotal:\s*(.+)$/m.exec(text)?.[1]);
}

/** The distances of a node's distance file, for example `10 21`. */
function parseDistances(text: string): readonly number[] {
  return text.split(/\s+/).flatMap((part) => parseCount(part) ?? []);
}
