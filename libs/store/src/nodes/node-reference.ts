import { isNodeId, resolveNodeRef } from "@rollcall/domain";
import { type DecidedRefusal, refusalError } from "@rollcall/errors";
import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import type { NodeRecord } from "./node-record.ts";
import { findNodeIds, getNode, lockNode } from "./nodes.ts";

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

/** What many references mean. */
export interface ResolvedRefs {
  /** The nodes that are meant, sorted, each once. */
  readonly ids: readonly string[];
  /** References that mean no node, or several: as findNode() would throw. */
  readonly refusals: readonly { readonly ref: string; readonly refusal: DecidedRefusal }[];
}

/** Find the nodes that are meant by ids or unambiguous prefixes; an exact id always wins. */
export async function resolveRefs(db: Db, refs: readonly string[]): Promise<ResolvedRefs> {
  const possible = refs.filter(isNodeId);
  const { rows } = await sql<{ id: string }>`
    select id from nodes where id = any(${possible}::text[])`.execute(db);
  const exact = new Set(rows.map(({ id }) => id));
  const ids = new Set(exact);
  const refusals: { ref: string; refusal: DecidedRefusal }[] = [];
  for (const ref of new Set(refs)) {
    if (exact.has(ref)) continue;
    const found = resolveNodeRef(ref, await findNodeIds(db, ref));
    if (found.kind === "found") ids.add(found.id);
    else refusals.push({ ref, refusal: found.kind === "none" ? notFoundRefusal(ref) : found });
  }
  return { ids: [...ids].sort(), refusals };
}

async function resolve(db: Db, ref: string): Promise<string | null> {
  const found = resolveNodeRef(ref, await findNodeIds(db, ref));
  if (found.kind === "ambiguous") throw refusalError(found, ref);
  return found.kind === "found" ? found.id : null;
}

function notFound(ref: string): never {
  throw refusalError(notFoundRefusal(ref), ref);
}

function notFoundRefusal(ref: string): DecidedRefusal {
  const message = `node ${ref} not found; run \`rollcall node list\` to see the nodes there are`;
  return { reason: "NODE_NOT_FOUND", message, metadata: { node: ref } };
}
