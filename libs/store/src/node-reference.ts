import { resolveNodeRef } from "@rollcall/domain";
import { refusalError, refuse } from "@rollcall/runtime";
import type { NodeRecord } from "./node-record.ts";
import { findNodeIds, getNode, lockNode } from "./nodes.ts";
import type { Db, Tx } from "./store.ts";

/**
 * Find the node that is meant by an id or an unambiguous prefix of one; an exact id always wins.
 * Throws AMBIGUOUS_NODE or NODE_NOT_FOUND.
 */
export async function findNode(db: Db, ref: string): Promise<NodeRecord> {
  const id = await resolve(db, ref);
  return (id === null ? null : await getNode(db, id)) ?? notFound(ref);
}

/** The same, with the node's row locked until the transaction ends. */
export async function lockNamedNode(tx: Tx, ref: string): Promise<NodeRecord> {
  const id = await resolve(tx, ref);
  return (id === null ? null : await lockNode(tx, id)) ?? notFound(ref);
}

async function resolve(db: Db, ref: string): Promise<string | null> {
  const found = resolveNodeRef(ref, await findNodeIds(db, ref));
  if (found.kind === "ambiguous") throw refusalError(found, ref);
  return found.kind === "found" ? found.id : null;
}

function notFound(ref: string): never {
  const message = `node ${ref} not found; run \`rollcall node list\` to see the nodes there are`;
  throw refuse("NODE_NOT_FOUND", message, { metadata: { node: ref } });
}
