import type { Refusal } from "../refusal.ts";

/** What a node id looks like. */
export const NODE_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** The same for people. */
export const NODE_ID_RULE = "1-63 characters of [A-Za-z0-9._-], the first a letter or digit";

/** Tell whether a text can be a node id; anything else is refused before it is looked for. */
export function isNodeId(text: string): boolean {
  return NODE_ID_PATTERN.test(text);
}

/** The refusal of a field that is no node id. */
export interface InvalidNodeId extends Refusal<"INVALID_NODE_ID"> {
  readonly violations: readonly [{ readonly field: string; readonly description: string }];
}

/** Check that a field of a request can be a node id. */
export function checkNodeId(nodeId: string, field: string): InvalidNodeId | null {
  if (isNodeId(nodeId)) return null;
  const description = `a node id is ${NODE_ID_RULE}`;
  const message = `${JSON.stringify(nodeId)} is no node id: ${description}`;
  return { reason: "INVALID_NODE_ID", message, metadata: { node: nodeId }, violations: [{ field, description }] };
}

/** The node that was meant, or why there is not exactly one; an ambiguous one is a refusal as it stands. */
export type NodeRefResolution =
  | { readonly kind: "found"; readonly id: string }
  | { readonly kind: "none" }
  | ({ readonly kind: "ambiguous" } & Refusal<"AMBIGUOUS_NODE">);

const NAMED_MATCHES = 3;

/**
 * Find the node that a person means by an id or a prefix of one. An exact id wins over a prefix. An empty text means
 * no node, not every node.
 *
 * @param matches the ids that start with `ref`, sorted, the first four being enough.
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

/** What ids have in common that people take for one: the same letters, in whatever case. Ids are ASCII. */
export function caselessId(id: string): string {
  return id.toLowerCase();
}

/** Whether two ids are different, and differ in case alone. */
export function isConfusable(id: string, other: string): boolean {
  return id !== other && caselessId(id) === caselessId(other);
}

/**
 * Decide whether a node that is not known yet may have an id, given ids that exist. Nodes that are known keep theirs,
 * also when they are confusable: records have such pairs from before this rule.
 */
export function checkNewId(id: string, existing: readonly string[]): Refusal<"NODE_ID_CONFUSABLE"> | null {
  if (existing.includes(id)) return null;
  const other = existing.find((it) => isConfusable(id, it));
  if (other === undefined) return null;
  const message =
    `node ${id} would be taken for node ${other}, whose id differs in case alone; join as ${other} with its key, ` +
    `choose another id, or have an operator delete node ${other} first`;
  return { reason: "NODE_ID_CONFUSABLE", message, metadata: { node: id, existing: other } };
}

/**
 * Whether a ban on an id keeps a node out: under exactly that id, and while a node is not known under the same letters
 * in another case either.
 */
export function isIdBanned(id: string, bannedId: string, isKnown: boolean): boolean {
  return id === bannedId || (!isKnown && isConfusable(id, bannedId));
}
