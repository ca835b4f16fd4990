import { type Amounts, SteadyAmounts } from "@rollcall/domain";
import type { MachineFacts } from "./machine-facts.ts";

/**
 * Holds those facts of a machine still that move by themselves: memory, that of its NUMA nodes, and the size of the
 * disk.
 */
export class SteadyFacts {
  readonly #amounts = new SteadyAmounts();

  /** The facts to report now that these were read. `nowMs` is monotonic. */
  take(facts: MachineFacts, nowMs: number): MachineFacts {
    const amounts = this.#amounts.take(amountsOf(facts), nowMs);
    return {
      ...facts,
      memoryBytes: amounts.get("memory") ?? facts.memoryBytes,
      diskBytes: amounts.get("disk"),
      numaNodes: facts.numaNodes.map((node) => ({
        ...node,
        memoryBytes: amounts.get(`numa ${node.id}`),
      })),
    };
  }
}

function amountsOf({ memoryBytes, diskBytes, numaNodes }: MachineFacts): Amounts {
  const all: readonly (readonly [string, number | undefined])[] = [
    ["memory", memoryBytes],
    ["disk", diskBytes],
    ...numaNodes.map((node) => [`numa ${node.id}`, node.memoryBytes] as const),
  ];
  return new Map(all.flatMap(([name, bytes]) => (bytes === undefined ? [] : [[name, bytes]])));
}
