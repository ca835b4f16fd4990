import {
  type AuditHead,
  type AuditProblem,
  type AuditVerdict,
  judgeAuditPiece,
  judgeExpectedHead,
} from "@rollcall/domain";
import type { Db } from "../database/store.ts";
import { isSealed, readAuditCut } from "./audit-cut.ts";
import { auditHash, FIRST_AUDIT_HASH } from "./audit-hash.ts";
import { auditHashAt, readAuditPiece } from "./audit-log.ts";

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
  const start = await startOf(db, after);
  let verdict: AuditVerdict = { ...NOTHING_CHECKED, ...start };
  while (verdict.checked < limit && !verdict.complete && verdict.problem === null) {
    const { checked, through } = verdict;
    const most = Math.min(limit - checked, ROWS_OF_ONE_READ);
    const piece = await readAuditPiece(db, through.sequence, most);
    const cut = await startOf(db, through);
    if (cut.through !== through) {
      // It was cut meanwhile.
      verdict = { ...verdict, ...cut };
      continue;
    }
    const judged = judgeAuditPiece(piece, { after: through, limit: most }, (entry) =>
      auditHash(entry.previousHash, entry),
    );
    verdict = { ...judged, checked: checked + judged.checked };
  }
  if (verdict.problem !== null || expected === undefined) return verdict;
  const problem = await compareWithExpected(db, expected);
  return { ...verdict, problem };
}

/** Where to begin: after a point of the log, or where the log begins. A cut that is not ours is a problem. */
async function startOf(db: Db, after: AuditHead): Promise<Pick<AuditVerdict, "through" | "problem">> {
  const cut = await readAuditCut(db);
  if (cut === null || cut.sequence <= after.sequence) return { through: after, problem: null };
  const { sequence, hash } = cut;
  const row = await db.selectFrom("cluster").select("secret").executeTakeFirst();
  if (row !== undefined && isSealed(row.secret, cut)) return { through: { sequence, hash }, problem: null };
  const message = `entries up to ${sequence} were removed by hand: no process of the cluster has sealed that cut`;
  return { through: after, problem: { sequence, kind: "CUT_FORGED", message } };
}

/** A row may have some kilobytes. */
const ROWS_OF_ONE_READ = 1_000;
const NOTHING_CHECKED = { checked: 0, complete: false, head: null, problem: null };

async function compareWithExpected(db: Db, expected: AuditHead): Promise<AuditProblem | null> {
  const { sequence } = expected;
  const cut = await readAuditCut(db);
  if (cut !== null && sequence === cut.sequence) return judgeExpectedHead(expected, cut.hash);
  if (cut !== null && sequence > 0n && sequence < cut.sequence) {
    const message = `entry ${sequence} was removed: the log begins after entry ${cut.sequence}; look in the export`;
    return { sequence, kind: "EXPECTED_HEAD_DIFFERS", message };
  }
  const hash = sequence === 0n ? FIRST_AUDIT_HASH : await auditHashAt(db, sequence);
  return judgeExpectedHead(expected, hash);
}
