import { type RawBuilder, sql } from "kysely";

/**
 * Make a table of JSON objects for the from clause of a statement. The statement names the table and its columns. The
 * limit tells the planner the number of rows. Without it, the planner assumes a hundred rows, and scans tables of up to
 * about ten thousand rows completely.
 */
export function rowsFrom<T>(items: readonly object[], columns: RawBuilder<T>): RawBuilder<unknown> {
  return sql`(
    select * from jsonb_to_recordset(${JSON.stringify(items)}::jsonb) as item (${columns}) limit ${items.length}
  )`;
}

/**
 * Split a batch into rounds, because one statement cannot write a row twice. Each key occurs at most once per round,
 * and the items of a key keep their order.
 */
export function inRounds<T>(items: readonly T[], keyOf: (item: T) => string): readonly (readonly T[])[] {
  const rounds: T[][] = [];
  const turns = new Map<string, number>();
  for (const item of items) {
    const key = keyOf(item);
    const turn = turns.get(key) ?? 0;
    turns.set(key, turn + 1);
    const round = rounds[turn];
    if (round === undefined) rounds.push([item]);
    else round.push(item);
  }
  return rounds;
}
