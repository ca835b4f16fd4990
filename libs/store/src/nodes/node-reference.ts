import { isNodeId, type NodeRecord, type Refusal, resolveNodeRef, suggestName } from "@rollcall/domain";
import { type DecidedRefusal, refusalError } from "@rollcall/errors";
import { sql } from "kysely";
import { findNearNames, withSuggestion } from "../database/near-names.ts";
import type { Db, Tx } from "../database/store.ts";
import { listNodeIds, type NodeFilter } from "./list-nodes.ts";
import { findNodeIds, getNode, lockNode } from "./nodes.ts";

/** The node of exactly this id. Throws NODE_NOT_FOUND. */
export async function findNode(db: Db, id: string): Promise<NodeRecord> {
  return (isNodeId(id) ? await getNode(db, id) : null) ?? notFound(db, id);
}

/**
 * The node that a person means by an id or an unambiguous prefix of one; an exact id always wins. Only for what people
 * read: a change must not depend on which other nodes exist. Throws AMBIGUOUS_NODE or NODE_NOT_FOUND.
 */
export async function findNodeByPrefix(db: Db, ref: string): Promise<NodeRecord> {
  const found = resolveNodeRef(ref, await findNodeIds(db, ref));
  if (found.kind === "ambiguous") throw refusalError(found, ref);
  return (found.kind === "found" ? await getNode(db, found.id) : null) ?? notFound(db, ref);
}

/** The node of exactly this id, with its row locked until the transaction ends. Throws NODE_NOT_FOUND. */
export async function lockNamedNode(tx: Tx, id: string): Promise<NodeRecord> {
  return (isNodeId(id) ? await lockNode(tx, id) : null) ?? notFound(tx, id);
}

/** Which of some names are ids of nodes. */
export interface KnownNodes {
  /** The nodes, sorted, each once. */
  readonly ids: readonly string[];
  /** What findNode() would throw for each of the other names. */
  readonly refusals: readonly { readonly name: string; readonly refusal: DecidedRefusal }[];
}

/** Find the nodes of exactly these ids. */
export async function findKnownNodes(db: Db, names: readonly string[]): Promise<KnownNodes> {
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

async function notFound(db: Db, name: string): Promise<never> {
  throw refusalError(await nodeNotFound(db, name), name);
}

/** The refusal of a name that no node has, with the node that was most likely meant. */
export function nodeNotFound(db: Db, name: string): Promise<DecidedRefusal> {
  return withSuggestion(db, "node", name, nodeMissing(name));
}

function nodeMissing(name: string): Refusal<"NODE_NOT_FOUND"> {
  return { reason: "NODE_NOT_FOUND", message: `node ${name} not found`, metadata: { node: name } };
}
