/** The fields of an audit log entry that link it to the previous one. */
export interface AuditLink {
  /** The entry's number. Numbers start at 1 and have no gaps. */
  readonly sequence: bigint;
  /** The hash of the previous entry. Hashes are 64 lower-case hexadecimal digits. */
  readonly previousHash: string;
  readonly hash: string;
}

/** A position in the audit log: the number of entries up to it, and the hash of the last of them. */
export interface AuditHead {
  readonly sequence: bigint;
  readonly hash: string;
}

/** A part of the audit log, and the head of the log read at the same time. */
export interface AuditPiece<Entry extends AuditLink> {
  readonly entries: readonly Entry[];
  /** The head in the store; null if the head was removed. */
  readonly head: AuditHead | null;
}

/** How the chain can be broken. */
export type AuditProblemKind =
  | "ENTRY_CHANGED"
  | "LINK_BROKEN"
  | "ENTRIES_MISSING"
  | "HEAD_DIFFERS"
  | "EXPECTED_HEAD_DIFFERS"
  | "CUT_FORGED";

/** A break in the chain, and the number of the first entry that shows it. */
export interface AuditProblem {
  readonly sequence: bigint;
  readonly kind: AuditProblemKind;
  readonly message: string;
}

/** The result of checking a part of the chain. */
export interface AuditResult {
  /** Number of correct entries in this part. */
  readonly checked: number;
  /** The position of the last correct entry. */
  readonly through: AuditHead;
  /** Whether the end of the log was reached. */
  readonly complete: boolean;
  /** The head in the store; null if the head was removed. */
  readonly head: AuditHead | null;
  /** The first problem; null if there is none. */
  readonly problem: AuditProblem | null;
}

/**
 * Check the entries that follow a position in the log. Fewer than `limit` entries mean that the log ends here.
 *
 * @param hashOf computes the correct hash of an entry.
 */
export function evaluateAuditPiece<Entry extends AuditLink>(
  { entries, head }: AuditPiece<Entry>,
  read: { readonly after: AuditHead; readonly limit: number },
  hashOf: (entry: Entry) => string,
): AuditResult {
  const { after, limit } = read;
  let through = after;
  for (const [checked, entry] of entries.entries()) {
    const problem = evaluateEntry(entry, through, hashOf(entry));
    if (problem !== null) return { checked, through, complete: false, head, problem };
    through = { sequence: entry.sequence, hash: entry.hash };
  }
  const complete = entries.length < limit;
  const problem = complete ? evaluateHead(through, head) : null;
  return { checked: entries.length, through, complete, head, problem };
}

function evaluateEntry(entry: AuditLink, before: AuditHead, hash: string): AuditProblem | null {
  const { sequence } = entry;
  const next = before.sequence + 1n;
  if (sequence !== next) {
    const missing = sequence - 1n === next ? `entry ${next} is` : `entries ${next} to ${sequence - 1n} are`;
    return { sequence, kind: "ENTRIES_MISSING", message: `${missing} missing` };
  }
  // Check the hash before the link: a changed entry also breaks the link to the next one.
  if (hash !== entry.hash) {
    const message = `entry ${sequence} was changed: its hash does not match its fields`;
    return { sequence, kind: "ENTRY_CHANGED", message };
  }
  if (entry.previousHash !== before.hash) {
    const message =
      before.sequence === 0n
        ? `entry ${sequence} does not start the chain: it was inserted, or the entries before it were changed`
        : `entry ${sequence} does not follow entry ${before.sequence}: one of them was changed and rehashed, ` +
          "swapped, or inserted";
    return { sequence, kind: "LINK_BROKEN", message };
  }
  return null;
}

function evaluateHead(through: AuditHead, head: AuditHead | null): AuditProblem | null {
  const { sequence, hash } = through;
  const kind = "HEAD_DIFFERS";
  if (head === null) {
    return { sequence, kind, message: "the head of the log was removed" };
  }
  if (head.sequence > sequence) {
    const newest = `its head says ${head.sequence}`;
    const message = `the log ends with entry ${sequence}, but ${newest}: newer entries were removed`;
    return { sequence: sequence + 1n, kind, message };
  }
  if (head.sequence < sequence) {
    const first = head.sequence + 1n;
    const message =
      `the log continues to entry ${sequence}, but its head says ${head.sequence}: entries from ${first} on were ` +
      "inserted";
    return { sequence: first, kind, message };
  }
  if (head.hash === hash) return null;
  const message =
    `the head of the log does not have the hash of entry ${sequence}: the last entry was changed and rehashed, ` +
    "or the head was changed";
  return { sequence, kind, message };
}

/**
 * Check a head that was recorded earlier against the log; null if they agree.
 *
 * @param hash the hash of that entry in the log; null if the log has no such entry.
 */
export function evaluateExpectedHead(expected: AuditHead, hash: string | null): AuditProblem | null {
  const { sequence } = expected;
  if (hash === expected.hash) return null;
  const message =
    hash === null
      ? `the expected entry ${sequence} is not in the log: the log was truncated, or this is a different log`
      : `entry ${sequence} does not have the expected hash: the log was rewritten, or this is a different log`;
  return { sequence, kind: "EXPECTED_HEAD_DIFFERS", message };
}
