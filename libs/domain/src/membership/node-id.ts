import type { Refusal } from "../refusal.ts";

/** The format of a node id. */
export const NODE_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** The rule of NODE_ID_PATTERN, described for people. */
export const NODE_ID_RULE = "1-63 characters of [A-Za-z0-9._-], the first a letter or digit";

/** Whether a string can be a node id. Other strings are refused before any lookup. */
export function isNodeId(text: string): boolean {
  return NODE_ID_PATTERN.test(text);
}

/** The refusal of a field that is not a node id. */
export interface InvalidNodeId extends Refusal<"INVALID_NODE_ID"> {
  readonly violations: readonly [{ readonly field: string; readonly description: string }];
}

/** Check that a field of a request can be a node id. */
export function checkNodeId(nodeId: string, field: string): InvalidNodeId | null {
  if (isNodeId(nodeId)) return null;
  const description = `a node id is ${NODE_ID_RULE}`;
  const message = `${JSON.stringify(nodeId)} is not a node id: ${description}`;
  return { reason: "INVALID_NODE_ID", message, metadata: { node: nodeId }, violations: [{ field, description }] };
}

/** The result of looking up a node: its id, nothing, or the refusal of a prefix that several nodes have. */
export type NodeRefResolution =
  | { readonly kind: "found"; readonly id: string }
  | { readonly kind: "none" }
  | ({ readonly kind: "ambiguous" } & Refusal<"AMBIGUOUS_NODE">);

const NAMED_MATCHES = 3;

/**
 * Find the node that a person means by an id or a prefix of an id. An exact id wins over a prefix. An empty string
 * matches no node.
 *
 * @param matches the ids that start with `ref`, sorted; the first four are enough.
 */
export function resolveNodeRef(ref: string, matches: readonly string[]): NodeRefResolution {
  const [first] = matches;
  if (ref === "" || first === undefined) return { kind: "none" };
  if (matches.includes(ref)) return { kind: "found", id: ref };
  if (matches.length === 1) return { kind: "found", id: first };
  const named = matches.slice(0, NAMED_MATCHES).join(", ");
  const more = matches.length > NAMED_MATCHES ? " and more" : "";
  return {
    kind: "ambiguous",
    reason: "AMBIGUOUS_NODE",
    message: `node prefix ${ref} is ambiguous, it matches ${named}${more}; use a longer prefix`,
    metadata: { node: ref, matches: named },
  };
}

/**
 * A form of an id that is the same for all ids that people would confuse, because they differ only in case. Ids are
 * ASCII.
 */
export function caselessId(id: string): string {
  return id.toLowerCase();
}

/** Whether two ids are different and differ only in case. */
export function isConfusable(id: string, other: string): boolean {
  return id !== other && caselessId(id) === caselessId(other);
}

/**
 * Decide whether a new node can have an id, given the existing ids. Known nodes keep confusable ids, because some are
 * older than this rule.
 */
export function checkNewId(id: string, existing: readonly string[]): Refusal<"NODE_ID_CONFUSABLE"> | null {
  if (existing.includes(id)) return null;
  const other = existing.find((it) => isConfusable(id, it));
  if (other === undefined) return null;
  const message =
    `node ${id} could be mistaken for node ${other}, whose id differs only in case; join as ${other} with its key, ` +
    `choose another id, or have an operator delete node ${other} first`;
  return { reason: "NODE_ID_CONFUSABLE", message, metadata: { node: id, existing: other } };
}

/**
 * Whether a ban on an id applies to a node. True if the node has exactly that id, or if the id differs only in case
 * and the node is not known.
 */
export function isIdBanned(id: string, bannedId: string, isKnown: boolean): boolean {
  return id === bannedId || (!isKnown && isConfusable(id, bannedId));
}
