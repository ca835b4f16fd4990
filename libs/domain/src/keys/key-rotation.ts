import type { Refusal } from "../refusal.ts";

/** The keys that can prove a node's identity, as fingerprints. */
export interface NodeIdentity {
  /** The node's key. */
  readonly current: string;
  /** A key that the node has offered but not used yet; null if there is none. */
  readonly next: string | null;
}

/** The result of a verified proof by one key. */
export type KeyDecision =
  | { readonly accepted: false }
  | {
      readonly accepted: true;
      readonly identity: NodeIdentity;
      /** Whether this was the first use of the next key. If so, the previous key is refused from now on. */
      readonly promoted: boolean;
    };

/** A node's request to rotate its key. Both proofs in it have been verified. */
export interface RotationRequest {
  readonly nodeId: string;
  /** The key that signed the request. */
  readonly used: string;
  /** The offered key. */
  readonly offered: string;
  /** Another node that has the offered key, or has itself offered it; null if there is none. */
  readonly otherOwner: string | null;
  /** Why the offered key is banned (may be empty); null if it is not banned. */
  readonly banReason: string | null;
}

/** The effect of a request to rotate. */
export type RotationDecision =
  | { readonly ok: true; readonly identity: NodeIdentity; readonly promoted: boolean }
  | {
      readonly ok: false;
      readonly refusal: Refusal<"PROOF_INVALID" | "NODE_KEY_IN_USE" | "NODE_BANNED">;
    };

/**
 * Decide whether to accept a key, and what its use changes. Both the current and the next key are accepted until the
 * next key is used for the first time. From then on, the next key is the current key, and the previous key is never
 * accepted again.
 */
export function acceptKey(identity: NodeIdentity, used: string): KeyDecision {
  if (used === identity.current) return { accepted: true, identity, promoted: false };
  if (used !== identity.next) return { accepted: false };
  return { accepted: true, identity: { current: used, next: null }, promoted: true };
}

/**
 * Decide on a request to rotate a node's key. Repeating an offer changes nothing. A different offer replaces an
 * unused one. The current key stays valid until the node has used the next key, so no order of requests can lock a
 * node out.
 */
export function decideRotation(identity: NodeIdentity, request: RotationRequest): RotationDecision {
  const { nodeId, used, offered, otherOwner, banReason } = request;
  const decision = acceptKey(identity, used);
  if (!decision.accepted) return refuse("PROOF_INVALID", proofInvalid(nodeId), { node: nodeId });
  const { promoted } = decision;
  const isKnown = offered === decision.identity.current || offered === decision.identity.next;
  if (isKnown) return { ok: true, identity: decision.identity, promoted };
  if (otherOwner !== null) {
    const message = `the key that node ${nodeId} offers belongs to node ${otherOwner}; make a new one`;
    return refuse("NODE_KEY_IN_USE", message, { node: nodeId, owner: otherOwner });
  }
  if (banReason !== null) {
    const message = `the key that node ${nodeId} offers is banned; make a new one`;
    return refuse("NODE_BANNED", message, { node: nodeId, banReason });
  }
  return { ok: true, identity: { ...decision.identity, next: offered }, promoted };
}

function proofInvalid(nodeId: string): string {
  return `the request is not signed by the key of node ${nodeId}; sign it with the key that the node uses now`;
}

function refuse(
  reason: "PROOF_INVALID" | "NODE_KEY_IN_USE" | "NODE_BANNED",
  message: string,
  metadata: Readonly<Record<string, string>>,
): RotationDecision {
  return { ok: false, refusal: { reason, message, metadata } };
}
