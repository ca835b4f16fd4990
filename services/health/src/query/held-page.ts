import type { HeldNode } from "../replica/held-node.ts";
import type { Replica } from "../replica/replica.ts";

/** Those of these nodes that a replica holds, by id. */
export function heldOf(replica: Replica, ids: readonly string[]): readonly HeldNode[] {
  return [...new Set(ids)].flatMap((id) => replica.nodes.find(id) ?? []).sort(byId);
}

/** The first nodes after an id that a replica holds. Looks at all of them; only the record has an index. */
export function heldAfter(replica: Replica, afterId: string, limit: number): readonly HeldNode[] {
  const rest = [...replica.nodes.all()].filter(({ id }) => id > afterId);
  return rest.sort(byId).slice(0, limit);
}

function byId(left: { readonly id: string }, right: { readonly id: string }): number {
  return left.id < right.id ? -1 : 1;
}
