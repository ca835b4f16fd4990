import { type Kysely, sql } from "kysely";
import { MIGRATION_TABLES, STORE_FUNCTIONS, STORE_SEQUENCES, STORE_TABLES } from "../database/object-names.ts";
import { ArchiveError } from "./archive-frames.ts";
import type { ArchivedSequence, ArchivedTable } from "./archive-manifest.ts";

/** List the existing Rollcall tables with the columns to copy. A table follows the tables that it references. */
export async function readTables(db: Kysely<unknown>): Promise<readonly ArchivedTable[]> {
  // Leave out generated columns, because Postgres computes them itself. Also leave out transaction ids, because they
  // have no meaning in another database: a restored row gets the id of the restoring transaction, as if it had just
  // been written.
  const { rows: tables } = await sql<ArchivedTable>`
    select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname = any(${STORE_TABLES})
      and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.atttypid <> 'xid8'::regtype
    group by c.relname
    order by c.relname`.execute(db);
  const { rows: references } = await sql<Reference>`
    select f.conrelid::regclass::text as "from", f.confrelid::regclass::text as "to"
    from pg_constraint f
    where f.contype = 'f' and f.connamespace = current_schema()::regnamespace`.execute(db);
  return inOrder(tables, references);
}

/** Read the current values of Rollcall's sequences. */
export async function readSequences(db: Kysely<unknown>): Promise<readonly ArchivedSequence[]> {
  const { rows } = await sql<{ name: string }>`
    select relname::text as name from pg_class
    where relnamespace = current_schema()::regnamespace and relkind = 'S' and relname = any(${STORE_SEQUENCES})
    order by relname`.execute(db);
  const found: ArchivedSequence[] = [];
  for (const { name } of rows) {
    const { rows: states } = await sql<Omit<ArchivedSequence, "name">>`
      select last_value::text as "lastValue", is_called as "isCalled" from ${sql.id(name)}`.execute(db);
    found.push(...states.map((state) => ({ name, ...state })));
  }
  return found;
}

/** The names of Rollcall's objects in a database, quoted for SQL statements. */
export interface StoreObjects {
  readonly tables: readonly string[];
  readonly sequences: readonly string[];
  /** The functions, with their argument types. */
  readonly functions: readonly string[];
}

/** Find Rollcall's objects in a database, even when only some exist. */
export async function readObjects(db: Kysely<unknown>): Promise<StoreObjects> {
  const { rows } = await sql<StoreObjects>`
    select
      array(
        select oid::regclass::text from pg_class
        where relnamespace = current_schema()::regnamespace and relkind = 'r'
          and relname = any(${[...STORE_TABLES, ...MIGRATION_TABLES]})
        order by relname
      ) as tables,
      array(
        select oid::regclass::text from pg_class
        where relnamespace = current_schema()::regnamespace and relkind = 'S' and relname = any(${STORE_SEQUENCES})
        order by relname
      ) as sequences,
      array(
        select oid::regprocedure::text from pg_proc
        where pronamespace = current_schema()::regnamespace and proname = any(${STORE_FUNCTIONS})
        order by proname
      ) as functions`.execute(db);
  const [objects] = rows;
  if (objects === undefined) throw new Error("Postgres's catalogue returned no row");
  return objects;
}

interface Reference {
  readonly from: string;
  readonly to: string;
}

function inOrder(tables: readonly ArchivedTable[], references: readonly Reference[]): readonly ArchivedTable[] {
  const left = new Map(tables.map((table) => [table.name, table]));
  const ordered: ArchivedTable[] = [];
  while (left.size > 0) {
    const isFree = ({ name }: ArchivedTable) =>
      references.every(({ from, to }) => from !== name || to === name || !left.has(to));
    const free = [...left.values()].filter(isFree);
    if (free.length === 0) throw new ArchiveError("Rollcall's tables reference each other in a cycle");
    for (const table of free) left.delete(table.name);
    ordered.push(...free);
  }
  return ordered;
}
