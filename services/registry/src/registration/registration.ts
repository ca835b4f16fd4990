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

/** A node that asks to join, its proof verified against the key that it gives. The rest is the record's to decide. */
export interface Registration {
  readonly nodeId: string;
  /** Raw Ed25519, 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly fingerprint: string;
  /** What was signed. It may be used once. */
  readonly nonce: Uint8Array;
  readonly report: InfoReport;
  /** Null for one without. */
  readonly joinToken: PresentedText | null;
  /** The address that it asks from, without a port; null where none is known. */
  readonly from: string | null;
  /** The call by which it asks, for the audit log. */
  readonly call: AuditedCall;
}

/** A join token as a machine gives it. Its text is kept no longer than it takes to hash it. */
export interface PresentedText {
  readonly token: PresentedJoinToken | GivenAccount;
  /** SHA-256 of the whole text. */
  readonly hash: Uint8Array;
}

/** A registration as planRegistrations() takes it. */
export type Registrant = Applicant & Pick<Registration, "publicKey" | "call">;

/** Compare what a registration gives with the tokens of the record. */
export function toRegistrant(
  registration: Registration,
  tokens: ReadonlyMap<string, Pick<LockedJoinToken, "hash">>,
): Registrant {
  const { nonce, joinToken, ...rest } = registration;
  return { ...rest, nonce: nonceName(nonce), joinToken: joinToken === null ? null : toGiven(joinToken, tokens) };
}

/** How a nonce is named in sets and maps. */
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

/** When a node is refused, and by which history of the record: what its machine runs by that is over. */
export interface DecidedBy {
  readonly wallMs: number;
  readonly logId: string;
}

/**
 * The error of a node that is refused. One that an operator rejected or banned is told when to ask again, as it is on
 * its stream: soon at first, so that an approval takes effect.
 *
 * @param known the node as recorded; undefined for one that is not in the record.
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
