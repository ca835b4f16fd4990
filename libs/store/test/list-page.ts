import type { Node } from "@rollcall/domain";
import type { Db } from "../src/database/store.ts";
import { type ListNodesOptions, type NodeCursor, readListing } from "../src/nodes/list-nodes.ts";

/** A page of nodes; `next` is null on the last page. */
export interface NodePage {
  readonly nodes: readonly Node[];
  readonly next: NodeCursor | null;
}

/**
 * Read one page of a listing. Like production callers, it reads one extra node to find out whether
 * there is a next page.
 */
export async function listPage(db: Db, options: ListNodesOptions): Promise<NodePage> {
  const { limit } = options;
  const listed = [];
  for await (const some of readListing(db, { ...options, limit: limit + 1 })) listed.push(...some);
  return {
    nodes: listed.slice(0, limit).map(({ node }) => node),
    next: listed.length > limit ? (listed[limit - 1]?.cursor ?? null) : null,
  };
}
