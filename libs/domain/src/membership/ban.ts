import type { Refusal } from "../refusal.ts";
import type { Membership } from "../states.ts";

/** The reason of the membership of a node that is banned: REJECTED, and not to be approved before the ban is lifted. */
export const MEMBERSHIP_BANNED = "OPERATOR_BANNED";

/** The reason of the membership of a node whose ban was lifted: still REJECTED. */
export const BAN_LIFTED = "BAN_LIFTED";

/** Whether a node with this membership is banned. */
export function isBanned(membership: Pick<Membership, "state" | "reason">): boolean {
  return membership.state === "REJECTED" && membership.reason === MEMBERSHIP_BANNED;
}

/** Whether a text is the fingerprint of a key: "SHA256:" and 32 bytes as base64url. */
export function isKeyFingerprint(text: string): boolean {
  return /^SHA256:[A-Za-z0-9_-]{43}$/.test(text);
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
