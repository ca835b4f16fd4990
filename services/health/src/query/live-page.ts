import type { LiveNode } from "../replica/live-node.ts";
import type { LiveView } from "../replica/live-view.ts";

/** The given nodes that a replica holds, sorted by id. */
export function heldOf(replica: Pick<LiveView, "nodes">, ids: readonly string[]): readonly LiveNode[] {
  return [...new Set(ids)].flatMap((id) => replica.nodes.find(id) ?? []).sort(byId);
}

/**
 * The first nodes after an id that a replica holds. Scans all nodes of the replica, because only the store has an
 * index.
 */
export function heldAfter(replica: Pick<LiveView, "nodes">, afterId: string, limit: number): readonly LiveNode[] {
  const rest = [...replica.nodes.all()].filter(({ id }) => id > afterId);
  return rest.sort(byId).slice(0, limit);
}

function byId(left: { readonly id: string }, right: { readonly id: string }): number {
  return left.id < right.id ? -1 : 1;
}

/**
 * Maximum number of nodes in one call to a replica, and in one message of a watch. A sample with 64 GPUs and 32
 * NUMA nodes takes 2.3 KiB, and a node has 60 samples, so eight nodes take 1.1 MiB. Clients accept 4 MiB.
 */
export const MOST_WITH_SAMPLES = 8;
const MOST_WITHOUT_SAMPLES = 128;

/** Number of nodes to request in one call. */
export function nodesOfOneQuestion(includeSamples: boolean): number {
  return includeSamples ? MOST_WITH_SAMPLES : MOST_WITHOUT_SAMPLES;
}
