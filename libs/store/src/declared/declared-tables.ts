import type { ColumnType } from "kysely";

/** Objects that were applied as declared state. Written by admin. */
export interface DeclaredObjectsTable {
  readonly name: string;
  readonly owner: string;
  /** JSON texts, as they are written; objects, as they are read. */
  readonly fields: ColumnType<Readonly<Record<string, string>>, string, string>;
  readonly node_id: string | null;
  readonly applied_by: string;
  readonly applied_at: ColumnType<Date, Date | undefined, Date>;
}
