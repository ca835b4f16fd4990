/** What every entry of the audit log has of the chain. */
export interface AuditLink {
  /** 1 for the first, without gaps. */
  readonly sequence: bigint;
  /** Of the entry that it follows. Hashes are lower-case hexadecimal, 64 digits. */
  readonly previousHash: string;
  readonly hash: string;
}

/** A point of the audit log: how many entries there are up to it, and the hash of the last. */
export interface AuditHead {
  readonly sequence: bigint;
  readonly hash: string;
}

/** A piece of the audit log and its head, seen at the same time. */
export interface AuditPiece<Entry extends AuditLink> {
  readonly entries: readonly Entry[];
  /** What the record keeps as the head; null when it was removed. */
  readonly head: AuditHead | null;
}

/** A way in which the chain can be broken. */
export type AuditProblemKind =
  | "ENTRY_CHANGED"
  | "LINK_BROKEN"
  | "ENTRIES_MISSING"
  | "HEAD_DIFFERS"
  | "EXPECTED_HEAD_DIFFERS"
  | "CUT_FORGED";

/** What is wrong with the chain, and at which row it shows. */
export interface AuditProblem {
  readonly sequence: bigint;
  readonly kind: AuditProblemKind;
  readonly message: string;
}

/** What a look at a piece of the chain found. */
export interface AuditVerdict {
  /** Rows of the piece that are right. */
  readonly checked: number;
  /** The last row that is right. */
  readonly through: AuditHead;
  /** Whether the end of the log was reached. */
  readonly complete: boolean;
  /** What the record keeps as the head; null when it is gone. */
  readonly head: AuditHead | null;
  /** The first thing that is wrong, or null. */
  readonly problem: AuditProblem | null;
}

/**
 * Judge entries that were read after a point of the log; fewer than `limit` of them are its end.
 *
 * @param hashOf the hash that an entry has to have.
 */
export function judgeAuditPiece<Entry extends AuditLink>(
  { entries, head }: AuditPiece<Entry>,
  read: { readonly after: AuditHead; readonly limit: number },
  hashOf: (entry: Entry) => string,
): AuditVerdict {
  const { after, limit } = read;
  let through = after;
  for (const [checked, entry] of entries.entries()) {
    const problem = judgeEntry(entry, through, hashOf(entry));
    if (problem !== null) return { checked, through, complete: false, head, problem };
    through = { sequence: entry.sequence, hash: entry.hash };
  }
  const complete = entries.length < limit;
  const problem = complete ? judgeHead(through, head) : null;
  return { checked: entries.length, through, complete, head, problem };
}

function judgeEntry(entry: AuditLink, before: AuditHead, hash: string): AuditProblem | null {
  const { sequence } = entry;
  const next = before.sequence + 1n;
  if (sequence !== next) {
    const missing = sequence - 1n === next ? `entry ${next} is` : `entries ${next} to ${sequence - 1n} are`;
    return { sequence, kind: "ENTRIES_MISSING", message: `${missing} missing` };
  }
  // Whether the row was changed is asked first: a changed one breaks the link that comes after it as well.
  if (hash !== entry.hash) {
    const message = `entry ${sequence} was changed: its hash is not that of its fields`;
    return { sequence, kind: "ENTRY_CHANGED", message };
  }
  if (entry.previousHash !== before.hash) {
    const message =
      before.sequence === 0n
        ? `entry ${sequence} does not begin the chain: it was inserted, or the entries before it were changed`
        : `entry ${sequence} does not follow entry ${before.sequence}: one of them was changed and sealed again, ` +
          "swapped, or inserted";
    return { sequence, kind: "LINK_BROKEN", message };
  }
  return null;
}

function judgeHead(through: AuditHead, head: AuditHead | null): AuditProblem | null {
  const { sequence, hash } = through;
  const kind = "HEAD_DIFFERS";
  if (head === null) {
    return { sequence, kind, message: "the head of the log was removed" };
  }
  if (head.sequence > sequence) {
    const message = `the log ends with entry ${sequence}, its head says ${head.sequence}: the newest were removed`;
    return { sequence: sequence + 1n, kind, message };
  }
  if (head.sequence < sequence) {
    const first = head.sequence + 1n;
    const message =
      `the log goes on to entry ${sequence}, and its head says ${head.sequence}: entries from ${first} on were ` +
      "inserted";
    return { sequence: first, kind, message };
  }
  if (head.hash === hash) return null;
  const message =
    `the head of the log has another hash than entry ${sequence}: the last entry was changed and sealed again, ` +
    "or the head was";
  return { sequence, kind, message };
}

/** Judge a head that was noted down before by the hash that the log has there; null when it has none. */
export function judgeExpectedHead(expected: AuditHead, hash: string | null): AuditProblem | null {
  const { sequence } = expected;
  if (hash === expected.hash) return null;
  const message =
    hash === null
      ? `entry ${sequence}, which was noted down, is not in the log: it was cut, or this is another log`
      : `entry ${sequence} has another hash than was noted down: the log was rewritten, or this is another log`;
  return { sequence, kind: "EXPECTED_HEAD_DIFFERS", message };
}
