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

/**
 * Split a batch into rounds in which each key occurs once, keeping the order of each key's items: one statement cannot
 * write one row twice.
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
