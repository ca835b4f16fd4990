import {
  type AuditHead,
  type AuditProblem,
  type AuditResult,
  evaluateAuditPiece,
  evaluateExpectedHead,
} from "@rollcall/domain";
import type { Db } from "../database/store.ts";
import { isSealed, readAuditCut } from "./audit-cut.ts";
import { auditHash, FIRST_AUDIT_HASH } from "./audit-hash.ts";
import { auditHashAt, readAuditPiece } from "./audit-log.ts";

/** The position before the first row. */
export const AUDIT_START: AuditHead = { sequence: 0n, hash: FIRST_AUDIT_HASH };

export interface VerifyAuditOptions {
  /** The last entry of the previous piece. */
  readonly after: AuditHead;
  /** Maximum number of rows to check. */
  readonly limit: number;
  /** A head that was noted earlier. The log must contain it. */
  readonly expected?: AuditHead;
}

/**
 * Verify a piece of the chain, and a head that was noted earlier. The hashes are computed here, because the database
 * under test could be forged.
 */
export async function verifyAudit(db: Db, options: VerifyAuditOptions): Promise<AuditResult> {
  const { after, limit, expected } = options;
  const start = await startOf(db, after);
  let decision: AuditResult = { ...NOTHING_CHECKED, ...start };
  while (decision.checked < limit && !decision.complete && decision.problem === null) {
    const { checked, through } = decision;
    const most = Math.min(limit - checked, ROWS_OF_ONE_READ);
    const piece = await readAuditPiece(db, through.sequence, most);
    const cut = await startOf(db, through);
    if (cut.through !== through) {
      // Continue after the older entries, which were removed in the meantime.
      decision = { ...decision, ...cut };
      continue;
    }
    const evaluated = evaluateAuditPiece(piece, { after: through, limit: most }, (entry) =>
      auditHash(entry.previousHash, entry),
    );
    decision = { ...evaluated, checked: checked + evaluated.checked };
  }
  if (decision.problem !== null || expected === undefined) return decision;
  const problem = await compareWithExpected(db, expected);
  return { ...decision, problem };
}

/**
 * Where to start verifying: after `after`, or after the cut if the cut is later. A cut that this cluster did not make
 * is a problem.
 */
async function startOf(db: Db, after: AuditHead): Promise<Pick<AuditResult, "through" | "problem">> {
  const cut = await readAuditCut(db);
  if (cut === null || cut.sequence <= after.sequence) return { through: after, problem: null };
  const { sequence, hash } = cut;
  const row = await db.selectFrom("cluster").select("secret").executeTakeFirst();
  if (row !== undefined && isSealed(row.secret, cut)) return { through: { sequence, hash }, problem: null };
  const message = `entries up to ${sequence} were removed by hand: the cut was not made by this cluster`;
  return { through: after, problem: { sequence, kind: "CUT_FORGED", message } };
}

/** Maximum number of rows per read. A row can take a few kilobytes. */
const ROWS_OF_ONE_READ = 1_000;
const NOTHING_CHECKED = { checked: 0, complete: false, head: null, problem: null };

async function compareWithExpected(db: Db, expected: AuditHead): Promise<AuditProblem | null> {
  const { sequence } = expected;
  const cut = await readAuditCut(db);
  if (cut !== null && sequence === cut.sequence) return evaluateExpectedHead(expected, cut.hash);
  if (cut !== null && sequence > 0n && sequence < cut.sequence) {
    const message = `entry ${sequence} was removed: the log starts after entry ${cut.sequence}; check the export`;
    return { sequence, kind: "EXPECTED_HEAD_DIFFERS", message };
  }
  const hash = sequence === 0n ? FIRST_AUDIT_HASH : await auditHashAt(db, sequence);
  return evaluateExpectedHead(expected, hash);
}
