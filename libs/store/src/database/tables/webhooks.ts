import type { PauseReason } from "@rollcall/domain";
import type { ColumnType, Generated } from "kysely";

/**
 * A point in time, written as a Date or by Postgres itself; stored in whole
 * milliseconds.
 */
type Timestamp = ColumnType<Date, Date | undefined, Date>;

/**
 * Webhooks that receive events. Written by the methods and the publisher of
 * admin.
 */
export interface WebhooksTable {
  readonly name: string;
  readonly url: string;
  readonly types: readonly string[];
  readonly exclude_types: readonly string[];
  readonly label_selector: string;
  readonly description: string;
  readonly paused: boolean;
  readonly pause_reason: PauseReason | null;
  readonly pause_message: Generated<string>;
  readonly paused_at: Date | null;
  /** Encrypted: see seal-secret.ts of admin. */
  readonly secret: Buffer;
  readonly former_secret: Buffer | null;
  readonly former_until: Date | null;
  readonly revision: bigint;
  readonly lost_through: Generated<bigint>;
  /**
   * Whether an event has reported that the webhook fell behind while it was
   * paused.
   */
  readonly told_behind: Generated<boolean>;
  readonly succeeded_at: Date | null;
  readonly failed_at: Date | null;
  readonly failure: Generated<string>;
  readonly generation: Generated<bigint>;
  readonly version: Generated<bigint>;
  readonly created_at: Timestamp;
  readonly updated_at: Timestamp;
  readonly updated_by: string;
}

/**
 * Subjects of webhooks with pending events. Written by the same code as
 * WebhooksTable.
 */
export interface WebhookBacklogTable {
  readonly webhook: string;
  readonly subject: string;
  readonly from_revision: bigint;
  readonly since: Date;
  readonly failures: number;
  readonly failure: string;
}
