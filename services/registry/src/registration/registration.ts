import { timingSafeEqual } from "node:crypto";
import {
  type Applicant,
  chooseWithin,
  type GivenAccount,
  type GivenJoinToken,
  type InfoReport,
  type Membership,
  type PresentedJoinToken,
  rejectedRetry,
} from "@rollcall/domain";
import { type DecidedRefusal, refusalError } from "@rollcall/errors";
import type { AuditedCall } from "@rollcall/rpc";
import type { LockedJoinToken } from "@rollcall/store";

/** A request to join whose proof matches the given key. The store decides the rest. */
export interface Registration {
  readonly nodeId: string;
  /** Raw Ed25519, 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly fingerprint: string;
  /** The signed nonce. It can be used once. */
  readonly nonce: Uint8Array;
  readonly report: InfoReport;
  /** The presented join token; null for none. */
  readonly joinToken: PresentedText | null;
  /** The caller's address without a port; null when unknown. */
  readonly from: string | null;
  /** The call, for the audit log. */
  readonly call: AuditedCall;
}

/** A join token from a machine. Its text is kept only until it is hashed. */
export interface PresentedText {
  readonly token: PresentedJoinToken | GivenAccount;
  /** SHA-256 of the whole text. */
  readonly hash: Uint8Array;
}

/** A registration in the form that planRegistrations() needs. */
export type Registrant = Applicant & Pick<Registration, "publicKey" | "call">;

/** Compare a registration's token with the tokens in the store. */
export function toRegistrant(
  registration: Registration,
  tokens: ReadonlyMap<string, Pick<LockedJoinToken, "hash">>,
): Registrant {
  const { nonce, joinToken, ...rest } = registration;
  return { ...rest, nonce: nonceName(nonce), joinToken: joinToken === null ? null : toGiven(joinToken, tokens) };
}

/** The key of a nonce in sets and maps. */
export function nonceName(nonce: Uint8Array): string {
  return Buffer.from(nonce.buffer, nonce.byteOffset, nonce.byteLength).toString("base64");
}

function toGiven(
  { token, hash }: PresentedText,
  tokens: ReadonlyMap<string, Pick<LockedJoinToken, "hash">>,
): GivenJoinToken {
  if (token.kind !== "own") return token;
  const recorded = tokens.get(token.id);
  return { isGenuine: recorded !== undefined && timingSafeEqual(recorded.hash, hash), ...token };
}

/**
 * The time of a refusal, and the history of the store that refuses the node. Executions that the machine started
 * under that history have ended.
 */
export interface DecidedBy {
  readonly wallMs: number;
  readonly logId: string;
}

/**
 * The error for a refused node. A rejected or banned node gets a retry delay, as on its stream. The delay is short
 * at first, so that an approval takes effect soon.
 *
 * @param known The node in the store; undefined for an unknown one.
 */
export function refusalOfNode(
  { nodeId, refusal }: { readonly nodeId: string; readonly refusal: DecidedRefusal },
  known: { readonly membership: Membership } | undefined,
  by: DecidedBy,
): Error {
  const isDecided = refusal.reason === "NODE_REJECTED" || refusal.reason === "NODE_BANNED";
  if (!isDecided) return refusalError(refusal, nodeId);
  const sinceMs = known === undefined ? 0 : by.wallMs - known.membership.sinceMs;
  const metadata = { ...refusal.metadata, logId: by.logId };
  return refusalError({ ...refusal, metadata }, nodeId, {
    retryAfterMs: chooseWithin(rejectedRetry(sinceMs), Math.random()),
  });
}
