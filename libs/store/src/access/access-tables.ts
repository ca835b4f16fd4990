import type { Generated } from "kysely";
import type { Computed, Timestamp } from "../database/schema.ts";

/** Who did what: one row for each mutation by somebody authenticated, chained by hashes. */
export interface AuditLogTable {
  readonly sequence: bigint;
  readonly at: Timestamp;
  readonly actor: string;
  readonly method: string;
  readonly target: string;
  readonly reason: string;
  readonly outcome: string;
  readonly address: string;
  readonly request_id: string;
  readonly previous_hash: Buffer;
  readonly hash: Buffer;
}

/** One row: the number of audit rows, and the hash of the last. */
export interface AuditHeadTable {
  readonly singleton: Generated<boolean>;
  readonly sequence: Generated<bigint>;
  readonly hash: Generated<Buffer>;
}

/** Bearer tokens of people and programs, stored as hashes. */
export interface AccessTokensTable {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly hash: Buffer;
  readonly created_at: Timestamp;
  readonly revoked_at: Date | null;
  readonly number: Computed<bigint>;
  readonly created_by: Generated<string>;
  readonly expires_at: Date | null;
  readonly last_used_at: Date | null;
  readonly revoked_by: string | null;
  readonly revoke_reason: string | null;
}
