/**
 * A refusal that the caller caused. It is a value rather than an exception. The shell turns it into an API error
 * with the same reason, message and metadata.
 */
export interface Refusal<Reason extends string = RefusalReason> {
  readonly reason: Reason;
  /** The message for people. Names the node and, unless the contract fixes the text, says what to do next. */
  readonly message: string;
  /** The variable parts of the message, for machines. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** A decision to refuse. */
export interface Refused<Reason extends string = RefusalReason> {
  readonly ok: false;
  readonly refusal: Refusal<Reason>;
}

export function refused<Reason extends string>(
  reason: Reason,
  message: string,
  metadata: Refusal["metadata"],
): Refused<Reason> {
  return { ok: false, refusal: { reason, message, metadata } };
}

/** Why a membership command was refused. */
export type RefusalReason =
  | "NODE_NOT_FOUND"
  | "NODE_ALREADY_APPROVED"
  | "NODE_ALREADY_REJECTED"
  | "NODE_REJECTED"
  | "NODE_BANNED"
  | "NODE_ALREADY_BANNED"
  | "NODE_NOT_BANNED"
  | "NODE_IS_ORCHESTRATOR";
