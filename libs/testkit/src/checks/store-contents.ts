import type { Store } from "@rollcall/store";
import { sql } from "kysely";

/** Tables that processes write on their own, whatever callers do, and those of the migrations. */
const OTHERS = [
  ...["configured_health_policy", "health_replicas", "leases", "process_reports", "upkeep_runs"],
  ...["kysely_migration", "kysely_migration_lock"],
];
/** Columns that record the call itself: when its token was last used. */
const OF_CALLS = ["last_used_at"];

/** The rows of every table that calls write, as sorted texts, keyed by table. */
export type StoreContents = ReadonlyMap<string, readonly string[]>;

/** Read every row that a call could have written. */
export async function readContents({ db }: Pick<Store, "db">): Promise<StoreContents> {
  const { rows: tables } = await sql<{ readonly name: string }>`
    select relname::text as name from pg_class
    where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname <> all(${OTHERS})`.execute(db);
  const reads = tables.map(
    ({ name }) => sql`
      select ${name}::text as name, (to_jsonb(r) - ${OF_CALLS}::text[])::text as content from ${sql.table(name)} as r`,
  );
  const { rows } = await sql<{ readonly name: string; readonly content: string }>`
    ${sql.join(reads, sql` union all `)} order by 1, 2`.execute(db);
  return new Map(
    tables.map(({ name }) => [name, rows.filter((row) => row.name === name).map(({ content }) => content)]),
  );
}

/** The rows of a table that were added, removed or changed. */
export function changedRows(before: StoreContents, after: StoreContents, table: string): readonly string[] {
  const [old, present] = [before.get(table) ?? [], after.get(table) ?? []];
  const [known, kept] = [new Set(old), new Set(present)];
  return [...old.filter((row) => !kept.has(row)), ...present.filter((row) => !known.has(row))];
}

/** The tables whose rows differ, sorted. */
export function changedTables(before: StoreContents, after: StoreContents): readonly string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => before.get(name)?.join("\n") !== after.get(name)?.join("\n")).sort();
}
