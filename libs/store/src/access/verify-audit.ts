import type { Db } from "../database/store.ts";
import { auditHash, FIRST_AUDIT_HASH } from "./audit-hash.ts";
import { type AuditEntry, type AuditHead, type AuditPiece, auditHashAt, readAuditPiece } from "./audit-log.ts";

/** A way in which the chain can be broken. */
export type AuditProblemKind =
  | "ENTRY_CHANGED"
  | "LINK_BROKEN"
  | "ENTRIES_MISSING"
  | "HEAD_DIFFERS"
  | "EXPECTED_HEAD_DIFFERS";

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

/** Before the first row. */
export const AUDIT_START: AuditHead = { sequence: 0n, hash: FIRST_AUDIT_HASH };

export interface VerifyAuditOptions {
  /** Where the piece before ended. */
  readonly after: AuditHead;
  /** Rows at most. */
  readonly limit: number;
  /** A head that was noted down before, to be found in this log. */
  readonly expected?: AuditHead;
}

/**
 * Check a piece of the chain, and against a head that was noted down. The hashes are computed here, not by the database
 * that is checked.
 */
export async function verifyAudit(db: Db, options: VerifyAuditOptions): Promise<AuditVerdict> {
  const { after, limit, expected } = options;
  let verdict: AuditVerdict = { ...NOTHING_CHECKED, through: after };
  while (verdict.checked < limit && !verdict.complete && verdict.problem === null) {
    const { checked, through } = verdict;
    const most = Math.min(limit - checked, ROWS_OF_ONE_READ);
    const piece = judgeAuditPiece(await readAuditPiece(db, through.sequence, most), through, most);
    verdict = { ...piece, checked: checked + piece.checked };
  }
  if (verdict.problem !== null || expected === undefined) return verdict;
  const problem = await compareWithExpected(db, expected);
  return { ...verdict, problem };
}

/** A row may have some kilobytes. */
const ROWS_OF_ONE_READ = 1_000;
const NOTHING_CHECKED = { checked: 0, complete: false, head: null, problem: null };

/** Judge rows that were read after a point of the log; fewer than `limit` of them are its end. */
function judgeAuditPiece({ entries, head }: AuditPiece, after: AuditHead, limit: number): AuditVerdict {
  let through = after;
  for (const [checked, entry] of entries.entries()) {
    const problem = judgeEntry(entry, through);
    if (problem !== null) return { checked, through, complete: false, head, problem };
    through = { sequence: entry.sequence, hash: entry.hash };
  }
  const complete = entries.length < limit;
  const problem = complete ? judgeHead(through, head) : null;
  return { checked: entries.length, through, complete, head, problem };
}

function judgeEntry(entry: AuditEntry, before: AuditHead): AuditProblem | null {
  const { sequence } = entry;
  const next = before.sequence + 1n;
  if (sequence !== next) {
    const missing = sequence - 1n === next ? `entry ${next} is` : `entries ${next} to ${sequence - 1n} are`;
    return { sequence, kind: "ENTRIES_MISSING", message: `${missing} missing` };
  }
  // Whether the row was changed is asked first: a changed one breaks the link that comes after it as well.
  if (auditHash(entry.previousHash, entry) !== entry.hash) {
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

async function compareWithExpected(db: Db, expected: AuditHead): Promise<AuditProblem | null> {
  const { sequence } = expected;
  const hash = sequence === 0n ? FIRST_AUDIT_HASH : await auditHashAt(db, sequence);
  if (hash === expected.hash) return null;
  const message =
    hash === null
      ? `entry ${sequence}, which was noted down, is not in the log: it was cut, or this is another log`
      : `entry ${sequence} has another hash than was noted down: the log was rewritten, or this is another log`;
  return { sequence, kind: "EXPECTED_HEAD_DIFFERS", message };
}
