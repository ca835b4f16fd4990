import type { Refusal } from "../refusal.ts";

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
  const message = `node ${id} would be taken for node ${other}, whose id differs in case alone; join as ${other} with its key, choose another id, or have an operator delete node ${other} first, with \`rollcall node delete ${other}\``;
  return { reason: "NODE_ID_CONFUSABLE", message, metadata: { node: id, existing: other } };
}

/**
 * Whether a ban on an id keeps a node out: under exactly that id, and while a node is not known under the same letters
 * in another case either.
 */
export function isIdBanned(id: string, bannedId: string, isKnown: boolean): boolean {
  return id === bannedId || (!isKnown && isConfusable(id, bannedId));
}
