/** What an outcome is called when nothing was refused. */
export const AUDIT_OK = "OK";

/**
 * One thing that an authenticated caller did, or was refused. Texts of any content and length: what is kept is bounded.
 */
export interface NewAuditEntry {
  /** Who: "token:<id>", "user:<subject>" or "node:<id>". */
  readonly actor: string;
  /** Which method, as "rollcall.admin.v1.AdminService/ApproveNode". */
  readonly method: string;
  /** What it was about, for example a node id; may be empty. */
  readonly target: string;
  /** The reason that the caller gave; may be empty. */
  readonly reason: string;
  /** "OK", or the ErrorReason it was refused with. */
  readonly outcome: string;
  /** Where the call came from, as HOST:PORT; with a blank and the session's id when a session of the console called. */
  readonly address: string;
  /** The call's x-request-id. */
  readonly requestId: string;
}

/** Longest texts that are kept, in characters. */
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
 * An entry as the record can keep it: what a caller sends must never be what makes the change fail that is to be
 * recorded. U+0000 and halves of surrogate pairs become U+FFFD, and what is too long is cut.
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

// With the flag u a pair is one character, so that only halves are of this category.
const LONE_SURROGATE = /\p{Surrogate}/gu;
