import { isNodeId, resolveNodeRef } from "@rollcall/domain";
import { refuse } from "@rollcall/runtime";
import { type Db, findNodeIds, getNode, type NodeRecord } from "@rollcall/store";
import { refusalError } from "./refusal-error.ts";

/**
 * Find the node that is meant by an id or an unambiguous prefix of one; an exact id always wins.
 * Throws AMBIGUOUS_NODE or NODE_NOT_FOUND.
 */
export async function findNode(db: Db, ref: string): Promise<NodeRecord> {
  // What cannot be the beginning of an id begins none, and must not reach the record as a pattern.
  const found = resolveNodeRef(ref, isNodeId(ref) ? await findNodeIds(db, ref) : []);
  if (found.kind === "ambiguous") throw refusalError(found, ref);
  const node = found.kind === "found" ? await getNode(db, found.id) : null;
  if (node === null) throw nodeNotFound(ref);
  return node;
}

function nodeNotFound(ref: string): Error {
  const message = `node ${ref} not found; run \`rollcall node list\` to see the nodes there are`;
  return refuse("NODE_NOT_FOUND", message, { metadata: { node: ref } });
}
