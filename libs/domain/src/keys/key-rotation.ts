import type { Refusal } from "../refusal.ts";

/** The keys with which a node may prove itself, as fingerprints. */
export interface NodeIdentity {
  /** The node's key. */
  readonly current: string;
  /** Offered by the node and not used yet; null when there is none. */
  readonly next: string | null;
}

/** What happens to an identity when a proof by one key has been verified. */
export type KeyVerdict =
  | { readonly accepted: false }
  | {
      readonly accepted: true;
      readonly identity: NodeIdentity;
      /** Whether this was the first use of the next key: the one before is refused from now on. */
      readonly promoted: boolean;
    };

/** A node's request to rotate, both of its proofs verified. */
export interface RotationRequest {
  readonly nodeId: string;
  /** The key that signed the request. */
  readonly used: string;
  /** The key that is offered. */
  readonly offered: string;
  /** Another node that has the offered key, or has offered it itself; null when there is none. */
  readonly otherOwner: string | null;
  /** Why the offered key is banned, which may be empty; null when it is not. */
  readonly banReason: string | null;
}

/** What a request to rotate does. */
export type RotationDecision =
  | { readonly ok: true; readonly identity: NodeIdentity; readonly promoted: boolean }
  | {
      readonly ok: false;
      readonly refusal: Refusal<"PROOF_INVALID" | "NODE_KEY_IN_USE" | "NODE_BANNED">;
    };

/**
 * Tell whether a key counts, and what its use does. The current key and the next one are both taken until the next one
 * is first used; from then on it is the current one, and nothing brings back the one before.
 */
export function acceptKey(identity: NodeIdentity, used: string): KeyVerdict {
  if (used === identity.current) return { accepted: true, identity, promoted: false };
  if (used !== identity.next) return { accepted: false };
  return { accepted: true, identity: { current: used, next: null }, promoted: true };
}

/**
 * Decide a request to rotate. The same offer again changes nothing; another one takes the place of an offer that was
 * not used: since the current key stays until the node has used the next one, no order of requests can lock a node out.
 */
export function decideRotation(identity: NodeIdentity, request: RotationRequest): RotationDecision {
  const { nodeId, used, offered, otherOwner, banReason } = request;
  const verdict = acceptKey(identity, used);
  if (!verdict.accepted) return refuse("PROOF_INVALID", proofInvalid(nodeId), { node: nodeId });
  const { promoted } = verdict;
  const isKnown = offered === verdict.identity.current || offered === verdict.identity.next;
  if (isKnown) return { ok: true, identity: verdict.identity, promoted };
  if (otherOwner !== null) {
    const message = `the key that node ${nodeId} offers belongs to node ${otherOwner}; make a new one`;
    return refuse("NODE_KEY_IN_USE", message, { node: nodeId, owner: otherOwner });
  }
  if (banReason !== null) {
    const message = `the key that node ${nodeId} offers is banned; make a new one`;
    return refuse("NODE_BANNED", message, { node: nodeId, banReason });
  }
  return { ok: true, identity: { ...verdict.identity, next: offered }, promoted };
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
