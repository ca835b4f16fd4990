import { isNodeId, type NodeRecord, resolveNodeRef } from "@rollcall/domain";
import { type DecidedRefusal, refusalError } from "@rollcall/errors";
import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import { listNodeIds, type NodeFilter } from "./list-nodes.ts";
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
    else refusals.push({ ref, refusal: found.kind === "none" ? nodeNotFound(ref) : found });
  }
  return { ids: [...ids].sort(), refusals };
}

/** Some nodes of a selection, in order of id. */
export interface SelectedIds {
  readonly ids: readonly string[];
  /** The last of them, after which others may come; null when there are no others. */
  readonly next: string | null;
}

/**
 * Find the nodes of a selection that come after an id, `limit` at most.
 *
 * @param part `ids` are those to choose from, sorted; null for every node.
 */
export async function selectNodeIds(
  db: Db,
  filter: NodeFilter,
  part: { readonly ids: readonly string[] | null; readonly after: string; readonly limit: number },
): Promise<SelectedIds> {
  const { limit, after } = part;
  if (part.ids === null) {
    const place = after === "" ? null : { id: after };
    const found = await listNodeIds(db, { filter, limit: limit + 1, orderBy: BY_ID, after: place });
    const ids = found.slice(0, limit);
    return { ids, next: found.length > limit ? (ids.at(-1) ?? null) : null };
  }
  const left = part.ids.filter((id) => id > after);
  const some = left.slice(0, limit);
  const next = left.length > some.length ? (some.at(-1) ?? null) : null;
  return { ids: [...(await thoseThatMatch(db, filter, some))].sort(), next };
}

/** Which of some nodes match a filter. */
export async function thoseThatMatch(db: Db, filter: NodeFilter, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (Object.keys(filter).length === 0 || ids.length === 0) return new Set(ids);
  const options = { filter: { ...filter, ids }, orderBy: BY_ID, limit: ids.length, after: null };
  return new Set(await listNodeIds(db, options));
}

const BY_ID = { column: "id", descending: false } as const;

async function resolve(db: Db, ref: string): Promise<string | null> {
  const found = resolveNodeRef(ref, await findNodeIds(db, ref));
  if (found.kind === "ambiguous") throw refusalError(found, ref);
  return found.kind === "found" ? found.id : null;
}

function notFound(ref: string): never {
  throw refusalError(nodeNotFound(ref), ref);
}

/** The refusal of a reference that means no node. */
export function nodeNotFound(ref: string): DecidedRefusal {
  return { reason: "NODE_NOT_FOUND", message: `node ${ref} not found`, metadata: { node: ref } };
}
