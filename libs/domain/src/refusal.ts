/**
 * A refusal that the caller brought about. It is a value, not an exception: the shell turns it into an error of the
 * API with the same reason, text and metadata.
 */
export interface Refusal<Reason extends string = RefusalReason> {
  readonly reason: Reason;
  /** For people; names the node and, unless the text is fixed by the contract, what to do next. */
  readonly message: string;
  /** Whatever varies in the message, for machines. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** A decision against the caller. */
export interface Refused<Reason extends string = RefusalReason> {
  readonly ok: false;
  readonly refusal: Refusal<Reason>;
}

/** Decide against the caller. */
export function refused<Reason extends string>(
  reason: Reason,
  message: string,
  metadata: Refusal["metadata"],
): Refused<Reason> {
  return { ok: false, refusal: { reason, message, metadata } };
}

/** Why a command on a node's membership was refused. */
export type RefusalReason =
  | "NODE_NOT_FOUND"
  | "NODE_ALREADY_APPROVED"
  | "NODE_ALREADY_REJECTED"
  | "NODE_REJECTED"
  | "NODE_BANNED"
  | "NODE_ALREADY_BANNED"
  | "NODE_NOT_BANNED"
  | "NODE_IS_ORCHESTRATOR";
