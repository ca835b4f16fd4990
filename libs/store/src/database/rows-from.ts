import { type RawBuilder, sql } from "kysely";

/**
 * JSON objects as a table for the from clause of a statement, which names it and whose columns are these. The limit
 * tells the planner how many there are: of a function it assumes a hundred rows, and for a hundred it reads tables of
 * up to some ten thousand rows whole.
 */
export function rowsFrom<T>(items: readonly object[], columns: RawBuilder<T>): RawBuilder<unknown> {
  return sql`(
    select * from jsonb_to_recordset(${JSON.stringify(items)}::jsonb) as item (${columns}) limit ${items.length}
  )`;
}
