import type { BrakeMode } from "@rollcall/domain";
import type { Generated } from "kysely";
import type { Timestamp } from "../database/schema.ts";

/**
 * Brakes that are, or were of late, not NORMAL. Written by the health process that decides, but for what operators say.
 */
export interface BrakesTable {
  readonly group_name: string;
  readonly mode: Generated<BrakeMode>;
  readonly mode_since: Timestamp;
  readonly size: Generated<number>;
  readonly window_loss: Generated<bigint>;
  /** The last order that was carried out. */
  readonly followed: Generated<number>;
  /** From here on admin writes. */
  readonly frozen_since: Date | null;
  readonly frozen_by: string | null;
  readonly frozen_reason: string | null;
  readonly orders: Generated<number>;
  readonly ordered_loss: Generated<bigint>;
  readonly ordered_by: Generated<string>;
  readonly order_reason: Generated<string>;
}
