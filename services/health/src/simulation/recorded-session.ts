import type { Connection, Health } from "@rollcall/domain";

/** A node's session as the record has it. */
export interface RecordedSession {
  readonly node: number;
  epoch: number;
  /** The instance that owns it. */
  replica: string | null;
  connection: Connection;
  health: Health;
}
