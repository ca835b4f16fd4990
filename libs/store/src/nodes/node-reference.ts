import { isNodeId, type Node, type Refusal, resolveNodeRef, suggestName } from "@rollcall/domain";
import { type DecidedRefusal, refusalError } from "@rollcall/errors";
import { sql } from "kysely";
import { findNearNames, withSuggestion } from "../database/near-names.ts";
import type { Db, Tx } from "../database/store.ts";
import { listNodeIds, type NodeFilter } from "./list-nodes.ts";
import { findNodeIds, getNode, lockNode } from "./nodes.ts";

/** Get the node with exactly this id. Throws NODE_NOT_FOUND. */
export async function findNode(db: Db, id: string): Promise<Node> {
  return (isNodeId(id) ? await getNode(db, id) : null) ?? notFound(db, id);
}

/**
 * Get the node with this id or with this unambiguous prefix of its id; an exact id always wins. Use it only for reads
 * by people: a change must not depend on which other nodes exist. Throws AMBIGUOUS_NODE or NODE_NOT_FOUND.
 */
export async function findNodeByPrefix(db: Db, ref: string): Promise<Node> {
  const found = resolveNodeRef(ref, await findNodeIds(db, ref));
  if (found.kind === "ambiguous") throw refusalError(found, ref);
  return (found.kind === "found" ? await getNode(db, found.id) : null) ?? notFound(db, ref);
}

/** Get the node with exactly this id and lock its row until the transaction ends. Throws NODE_NOT_FOUND. */
export async function lockNamedNode(tx: Tx, id: string): Promise<Node> {
  return (isNodeId(id) ? await lockNode(tx, id) : null) ?? notFound(tx, id);
}

/** The given names, divided into ids of existing nodes and other names. */
export interface NodeIndex {
  /** The ids of existing nodes, sorted and without duplicates. */
  readonly ids: readonly string[];
  /** For each of the other names, the error that findNode() would throw. */
  readonly refusals: readonly { readonly name: string; readonly refusal: DecidedRefusal }[];
}

/** Find the nodes with exactly these ids. */
export async function findKnownNodes(db: Db, names: readonly string[]): Promise<NodeIndex> {
  const possible = names.filter(isNodeId);
  const { rows } = await sql<{ id: string }>`
    select id from nodes where id = any(${possible}::text[])`.execute(db);
  const known = new Set(rows.map(({ id }) => id));
  const missing = [...new Set(names)].filter((name) => !known.has(name));
  const near = await findNearNames(db, "node", missing);
  const refusals = missing.map((name) => {
    return { name, refusal: suggestName(nodeMissing(name), name, near.get(name) ?? []) };
  });
  return { ids: [...known].sort(), refusals };
}

/** Some of the nodes of a selection, in order of id. */
export interface SelectedIds {
  readonly ids: readonly string[];
  /** The id to continue after; null if no nodes follow. */
  readonly next: string | null;
}

/**
 * Find up to `limit` nodes of a selection after an id.
 *
 * @param part `ids` are the ids to select from, sorted; null selects from all nodes.
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

/** Find which of the given nodes match a filter. */
export async function thoseThatMatch(db: Db, filter: NodeFilter, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (Object.keys(filter).length === 0 || ids.length === 0) return new Set(ids);
  const options = { filter: { ...filter, ids }, orderBy: BY_ID, limit: ids.length, after: null };
  return new Set(await listNodeIds(db, options));
}

const BY_ID = { column: "id", descending: false } as const;

async function notFound(db: Db, name: string): Promise<never> {
  throw refusalError(await nodeNotFound(db, name), name);
}

/** The error for an unknown node name, with the most similar existing name. */
export function nodeNotFound(db: Db, name: string): Promise<DecidedRefusal> {
  return withSuggestion(db, "node", name, nodeMissing(name));
}

function nodeMissing(name: string): Refusal<"NODE_NOT_FOUND"> {
  return { reason: "NODE_NOT_FOUND", message: `node ${name} not found`, metadata: { node: name } };
}
