import type { ColumnType, Generated } from "kysely";

type Timestamp = ColumnType<Date, Date | undefined, Date>;
type JsonColumn<T> = ColumnType<T, string, string>;

/** Tokens that machines join with, stored as hashes. */
export interface JoinTokensTable {
  readonly id: string;
  readonly number: Generated<bigint>;
  readonly hash: Buffer;
  readonly description: string;
  readonly max_uses: number | null;
  readonly expires_at: Date | null;
  readonly node_name_pattern: string;
  readonly labels: JsonColumn<Readonly<Record<string, string>>>;
  readonly preauthorized: boolean;
  readonly ephemeral: boolean;
  readonly created_at: Timestamp;
  readonly created_by: string;
  readonly revoked_at: Date | null;
  readonly revoked_by: string | null;
  readonly revoke_reason: string | null;
}

/** The machines that joined, and their tokens. */
export interface JoinTokenUsesTable {
  readonly id: Generated<bigint>;
  readonly token_id: string;
  readonly node_id: string;
  readonly fingerprint: string;
  readonly at: Timestamp;
}
