import type { Refusal } from "../refusal.ts";
import type { Membership } from "../states.ts";

/**
 * The reason in the membership of a banned node. The node is REJECTED, and cannot be approved until the ban is
 * lifted.
 */
export const MEMBERSHIP_BANNED = "OPERATOR_BANNED";

/** The reason in the membership of a node whose ban was lifted. The node is still REJECTED. */
export const BAN_LIFTED = "BAN_LIFTED";

/** A ban on a node id, a key, or both. A node with the id or the key cannot register. */
export interface Ban {
  readonly id: bigint;
  readonly nodeId: string | null;
  /** The fingerprint of the banned key. */
  readonly fingerprint: string | null;
  /** The operator's explanation; may be empty. */
  readonly reason: string;
  readonly actor: string;
  readonly atMs: number;
}

/** A ban to place. The store sets its time. */
export type NewBan = Omit<Ban, "id" | "atMs">;

/** The id and keys of a node that bans can refer to, including a key that it has offered but not used yet. */
export interface BannedNames {
  readonly nodeIds: readonly string[];
  readonly fingerprints: readonly string[];
}

/** Whether a node with this membership is banned. */
export function isBanned(membership: Pick<Membership, "state" | "reason">): boolean {
  return membership.state === "REJECTED" && membership.reason === MEMBERSHIP_BANNED;
}

/** Whether a string is the fingerprint of a key: "SHA256:" and 32 bytes as base64url. */
export function isKeyFingerprint(text: string): boolean {
  return /^SHA256:[A-Za-z0-9_-]{43}$/.test(text);
}

/** The id and keys that a ban on a node must cover. */
export function bannedNamesOf(node: {
  readonly id: string;
  readonly keyFingerprint: string | null;
  readonly nextKeyFingerprint: string | null;
}): BannedNames {
  const fingerprints = [node.keyFingerprint, node.nextKeyFingerprint].filter((key) => key !== null);
  return { nodeIds: [node.id], fingerprints };
}

/**
 * The bans that are still missing to cover an id and its keys: one ban for the id together with the first key, and
 * one ban for each further key.
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
 * The refusal for a banned node, whether its id or its key is banned.
 *
 * @param banReason the operator's explanation; may be empty.
 */
export function bannedRefusal(nodeId: string, banReason: string): Refusal<"NODE_BANNED"> {
  const said = banReason === "" ? "no reason given" : banReason;
  return {
    reason: "NODE_BANNED",
    message: `node ${nodeId} has been banned: ${said}`,
    metadata: { node: nodeId, banReason: said },
  };
}
