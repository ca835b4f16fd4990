import type { NodeRecord } from "@rollcall/domain";
import type { Db } from "../src/database/store.ts";
import { type ListNodesOptions, type NodeCursor, readListing } from "../src/nodes/list-nodes.ts";

/** A page of nodes; `next` is null on the last one. */
export interface NodePage {
  readonly nodes: readonly NodeRecord[];
  readonly next: NodeCursor | null;
}

/** One page of a listing, made as callers do that read one more than they want. */
export async function listPage(db: Db, options: ListNodesOptions): Promise<NodePage> {
  const { limit } = options;
  const listed = [];
  for await (const some of readListing(db, { ...options, limit: limit + 1 })) listed.push(...some);
  return {
    nodes: listed.slice(0, limit).map(({ node }) => node),
    next: listed.length > limit ? (listed[limit - 1]?.cursor ?? null) : null,
  };
}
