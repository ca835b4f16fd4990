import type { Generated } from "kysely";

/** One-time sign-in codes for browsers, stored as hashes. */
export interface SignInCodesTable {
  readonly hash: Buffer;
  readonly role: string;
  readonly name: string;
  readonly owner_token: string | null;
  readonly owner_issuer: string | null;
  readonly owner_subject: string | null;
  /** See AccessTokensTable. */
  readonly groups_left_out: string | null;
  readonly session_ends_at: Date | null;
  readonly created_at: Generated<Date>;
  readonly expires_at: Date;
  readonly used_at: Date | null;
}
