import { createHash } from "node:crypto";
import type { NewAuditEntry } from "./audit.ts";

/** What the hash of an audit row covers. */
export interface HashedAuditRow extends NewAuditEntry {
  readonly sequence: bigint;
  /** Wall time in whole milliseconds since 1970. */
  readonly atMs: number;
}

/** What the first row follows: 64 zeros. */
export const FIRST_AUDIT_HASH = "0".repeat(64);

/**
 * The hash of a row that follows another one, in lower-case hexadecimal. The encoding is the one that audit_hash() of
 * migration 0008 makes in Postgres: each field as BYTES:TEXT, so that no two rows are encoded alike.
 */
export function auditHash(previousHash: string, row: HashedAuditRow): string {
  const fields = [
    "rollcall-audit-v1",
    previousHash,
    String(row.sequence),
    String(row.atMs),
    row.actor,
    row.method,
    row.target,
    row.reason,
    row.outcome,
    row.address,
    row.requestId,
  ];
  const hash = createHash("sha256");
  for (const field of fields) hash.update(`${Buffer.byteLength(field)}:${field},`);
  return hash.digest("hex");
}
