import { createHmac, timingSafeEqual } from "node:crypto";
import type { AuditHead } from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import type { AuditCutTable } from "../database/schema.ts";
import type { Db, Tx } from "../database/store.ts";

/**
 * The last entry that was removed from the audit log. The first remaining entry continues the chain from its
 * hash.
 */
export interface AuditCut extends AuditHead {
  /** HMAC with the cluster's secret, in hexadecimal. */
  readonly seal: string;
  readonly atMs: number;
}

/** The result of one call to pruneAudit(). */
export interface AuditPruning {
  readonly removed: number;
  /** The entry after which the log now starts; null if nothing was ever removed. */
  readonly cut: AuditCut | null;
  /** Whether every requested entry has been removed. */
  readonly complete: boolean;
}

/** Read the cut of the audit log; null if no entries were removed. */
export async function readAuditCut(db: Db): Promise<AuditCut | null> {
  const row = await db.selectFrom("audit_cut").selectAll().executeTakeFirst();
  return row === undefined ? null : toCut(row);
}

/**
 * Remove the oldest entries through the one with the given sequence and hash, at most `limit`. Returns null and
 * removes nothing if the log has no such entry.
 */
export async function pruneAudit(
  tx: Tx,
  { through, limit, secret }: { readonly through: AuditHead; readonly limit: number; readonly secret: Buffer },
): Promise<AuditPruning | null> {
  const before = await tx.selectFrom("audit_cut").selectAll().forUpdate().executeTakeFirstOrThrow();
  const cut = toCut(before);
  if (through.sequence === before.sequence && through.hash === before.hash.toString("hex")) {
    return { removed: 0, cut, complete: true };
  }
  if ((await hashOf(tx, through.sequence))?.toString("hex") !== through.hash) return null;
  const last = before.sequence + BigInt(limit);
  const sequence = through.sequence < last ? through.sequence : last;
  const hash = await hashOf(tx, sequence);
  if (hash === null) return null;
  const { rows } = await sql<{ removed: number }>`
    with gone as (delete from audit_log where sequence <= ${sequence} returning sequence)
    select count(*)::integer as removed from gone`.execute(tx);
  const seal = sealOf(secret, { sequence, hash: hash.toString("hex") });
  const after = await tx
    .updateTable("audit_cut")
    .set({ sequence, hash, seal, cut_at: sql<Date>`now()` })
    .returningAll()
    .executeTakeFirstOrThrow();
  return { removed: rows[0]?.removed ?? 0, cut: toCut(after), complete: sequence === through.sequence };
}

/** Whether this cluster made the cut. */
export function isSealed(secret: Buffer, cut: AuditCut): boolean {
  const [seal, expected] = [Buffer.from(cut.seal, "hex"), sealOf(secret, cut)];
  return seal.length === expected.length && timingSafeEqual(seal, expected);
}

function sealOf(secret: Buffer, { sequence, hash }: AuditHead): Buffer {
  return createHmac("sha256", secret).update(`rollcall-audit-cut-v1 ${sequence} ${hash}`).digest();
}

async function hashOf(tx: Tx, sequence: bigint): Promise<Buffer | null> {
  const row = await tx.selectFrom("audit_log").select("hash").where("sequence", "=", sequence).executeTakeFirst();
  return row?.hash ?? null;
}

function toCut({ sequence, hash, seal, cut_at }: Selectable<AuditCutTable>): AuditCut | null {
  if (sequence === 0n) return null;
  return { sequence, hash: hash.toString("hex"), seal: seal.toString("hex"), atMs: cut_at.getTime() };
}
