import type { ColumnType } from "kysely";

/**
 * Objects that were applied as declared state. The admin service writes them.
 */
export interface DeclaredObjectsTable {
  readonly name: string;
  readonly owner: string;
  /** The object's fields: written as JSON text, read as an object. */
  readonly fields: ColumnType<Readonly<Record<string, string>>, string, string>;
  readonly node_id: string | null;
  readonly applied_by: string;
  readonly applied_at: ColumnType<Date, Date | undefined, Date>;
}
