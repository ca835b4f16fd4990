import type { Refusal } from "../refusal.ts";
import type { Membership } from "../states.ts";

/** The reason of the membership of a node that is banned: REJECTED, and not to be approved before the ban is lifted. */
export const MEMBERSHIP_BANNED = "OPERATOR_BANNED";

/** The reason of the membership of a node whose ban was lifted: still REJECTED. */
export const BAN_LIFTED = "BAN_LIFTED";

/** A node id, a key, or both, that may not register. */
export interface Ban {
  readonly id: bigint;
  readonly nodeId: string | null;
  /** Of the banned key. */
  readonly fingerprint: string | null;
  /** In the operator's words; may be empty. */
  readonly reason: string;
  readonly actor: string;
  readonly atMs: number;
}

/** A ban to place. Since when it holds is the record's clock. */
export type NewBan = Omit<Ban, "id" | "atMs">;

/** The id and the keys by which bans name a node; a key that it has offered and not used yet is one of them. */
export interface BannedNames {
  readonly nodeIds: readonly string[];
  readonly fingerprints: readonly string[];
}

/** Whether a node with this membership is banned. */
export function isBanned(membership: Pick<Membership, "state" | "reason">): boolean {
  return membership.state === "REJECTED" && membership.reason === MEMBERSHIP_BANNED;
}

/** Whether a text is the fingerprint of a key: "SHA256:" and 32 bytes as base64url. */
export function isKeyFingerprint(text: string): boolean {
  return /^SHA256:[A-Za-z0-9_-]{43}$/.test(text);
}

/** The names of a node that a ban on it covers. */
export function bannedNamesOf(node: {
  readonly id: string;
  readonly keyFingerprint: string | null;
  readonly nextKeyFingerprint: string | null;
}): BannedNames {
  const fingerprints = [node.keyFingerprint, node.nextKeyFingerprint].filter((key) => key !== null);
  return { nodeIds: [node.id], fingerprints };
}

/**
 * The bans that are missing on these names: one for the id and its first key, and one for each further key. What was
 * banned before stays as it is.
 */
export function missingBans(
  { nodeIds, fingerprints }: BannedNames,
  earlier: readonly Pick<Ban, "nodeId" | "fingerprint">[],
  by: { readonly actor: string; readonly message: string },
): readonly NewBan[] {
  const circumstances = { reason: by.message, actor: by.actor };
  const ids = nodeIds.filter((id) => !earlier.some(({ nodeId }) => nodeId === id));
  const keys = fingerprints.filter((key) => !earlier.some(({ fingerprint }) => fingerprint === key));
  const count = Math.max(ids.length, keys.length);
  return Array.from({ length: count }, (_, at) => ({
    ...circumstances,
    nodeId: ids[at] ?? null,
    fingerprint: keys[at] ?? null,
  }));
}

/**
 * What a banned node is told, whether its id or its key is banned.
 *
 * @param banReason the operator's words; may be empty.
 */
export function bannedRefusal(nodeId: string, banReason: string): Refusal<"NODE_BANNED"> {
  const said = banReason === "" ? "no reason given" : banReason;
  return {
    reason: "NODE_BANNED",
    message: `node ${nodeId} has been banned: ${said}`,
    metadata: { node: nodeId, banReason: said },
  };
}
