import { createHash } from "node:crypto";
import type { NewAuditEntry } from "../database/audit.ts";

/** The fields of an audit row that its hash covers. */
export interface HashedAuditRow extends NewAuditEntry {
  readonly sequence: bigint;
  /** Wall time in whole milliseconds since 1970. */
  readonly atMs: number;
}

/** The previous hash in the first row: 64 zeros. */
export const FIRST_AUDIT_HASH = "0".repeat(64);

/**
 * Compute the hash of a row from the previous row's hash, in lower-case hexadecimal. The encoding is the same as
 * in audit_hash() in migration 0008: each field is BYTES:TEXT, so that no two rows have the same encoding.
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
