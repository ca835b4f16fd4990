/** The outcome of a call that was not refused. */
export const AUDIT_OK = "OK";

/**
 * An entry about a call that an authenticated caller made, or that was refused. Its strings can have any content
 * and length: they are cleaned and cut before they are stored.
 */
export interface NewAuditEntry {
  /** The caller: "token:<id>", "user:<subject>" or "node:<id>". */
  readonly actor: string;
  /** The called method, as "rollcall.admin.v1.AdminService/ApproveNode". */
  readonly method: string;
  /** The affected object, for example a node id; may be empty. */
  readonly target: string;
  /** The reason that the caller gave; may be empty. */
  readonly reason: string;
  /** "OK", or the ErrorReason of the refusal. */
  readonly outcome: string;
  /** The caller's address as HOST:PORT. A console session's id follows it after a space. */
  readonly address: string;
  /** The call's x-request-id. */
  readonly requestId: string;
}

/** Maximum length of each stored string, in characters. */
const LIMITS: Readonly<Record<keyof NewAuditEntry, number>> = {
  actor: 300,
  method: 200,
  target: 300,
  reason: 2_000,
  outcome: 100,
  address: 100,
  requestId: 128,
};

/**
 * Convert an entry to a form that the store accepts, because a caller's input must never make the audited change
 * fail. U+0000 and lone surrogates become U+FFFD, and long strings are cut.
 */
export function cleanAuditEntry(entry: NewAuditEntry): NewAuditEntry {
  const clean = (field: keyof NewAuditEntry) => cleanText(entry[field], LIMITS[field]);
  return {
    actor: clean("actor"),
    method: clean("method"),
    target: clean("target"),
    reason: clean("reason"),
    outcome: clean("outcome"),
    address: clean("address"),
    requestId: clean("requestId"),
  };
}

function cleanText(text: string, limit: number): string {
  const cut = text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
  return cut.replaceAll("\0", "\ufffd").replace(LONE_SURROGATE, "\ufffd");
}

// A lone surrogate. With the u flag, a surrogate pair is one character, so it does not match.
const LONE_SURROGATE = /\p{Surrogate}/gu;
