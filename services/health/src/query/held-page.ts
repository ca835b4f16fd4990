import type { HeldNode } from "../replica/held-node.ts";
import type { HeldView } from "../replica/held-view.ts";

/** Those of these nodes that a replica holds, by id. */
export function heldOf(replica: Pick<HeldView, "nodes">, ids: readonly string[]): readonly HeldNode[] {
  return [...new Set(ids)].flatMap((id) => replica.nodes.find(id) ?? []).sort(byId);
}

/** The first nodes after an id that a replica holds. Looks at all of them; only the record has an index. */
export function heldAfter(replica: Pick<HeldView, "nodes">, afterId: string, limit: number): readonly HeldNode[] {
  const rest = [...replica.nodes.all()].filter(({ id }) => id > afterId);
  return rest.sort(byId).slice(0, limit);
}

function byId(left: { readonly id: string }, right: { readonly id: string }): number {
  return left.id < right.id ? -1 : 1;
}

/**
 * Nodes in one call to a replica, and in one message of a watch. A sample may have 64 GPUs and 32 NUMA nodes, and a
 * node 60 samples of 2.3 KiB: these are 1.1 MiB, and clients take 4.
 */
export const MOST_WITH_SAMPLES = 8;
const MOST_WITHOUT_SAMPLES = 128;

/** How many nodes to ask for at a time. */
export function nodesOfOneQuestion(includeSamples: boolean): number {
  return includeSamples ? MOST_WITH_SAMPLES : MOST_WITHOUT_SAMPLES;
}
