import { type Refusal, suggestName } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "./store.ts";

/**
 * The kinds of named objects: the table and column of the names, and whether an index finds a name regardless of
 * case.
 */
const KINDS = {
  node: { table: "nodes", column: "id", isCaseless: true },
  bannedId: { table: "bans", column: "node_id", isCaseless: false },
  job: { table: "jobs", column: "name", isCaseless: false },
  execution: { table: "executions", column: "id", isCaseless: false },
  webhook: { table: "webhooks", column: "name", isCaseless: false },
  joinToken: { table: "join_tokens", column: "id", isCaseless: false },
  accessToken: { table: "access_tokens", column: "id", isCaseless: false },
} as const;

type NamedKind = keyof typeof KINDS;

/** How many names to compare before and after the missing name in sort order. */
const NEIGHBOURS = 4;
/** The format of every object's name. */
const NAME = /^[\x21-\x7e]{1,256}$/;

/**
 * Add the most similar existing name to the error about a missing object. The caller must be allowed to list
 * objects of this kind.
 */
export async function withSuggestion<Reason extends string>(
  db: Db,
  kind: NamedKind,
  name: string,
  refusal: Refusal<Reason>,
): Promise<Refusal<Reason>> {
  return suggestName(refusal, name, (await findNearNames(db, kind, [name])).get(name) ?? []);
}

/**
 * Find existing names next to missing ones in sort order. These usually share a prefix with the missing name. Each
 * missing name costs a few index rows, however many objects exist.
 */
export async function findNearNames(
  db: Db,
  kind: NamedKind,
  missing: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = missing.filter((name) => NAME.test(name));
  const near = new Map<string, string[]>();
  if (names.length === 0) return near;
  const { table, column, isCaseless } = KINDS[kind];
  const [from, name] = [sql.table(table), sql.ref(column)];
  const alike = sql`union all
        (select ${name} as name from ${from} where lower(${name}) = lower(missing.name) limit ${NEIGHBOURS})`;
  const { rows } = await sql<{ missing: string; name: string }>`
    select missing.name as missing, near.name
    from unnest(${names}::text[]) as missing (name),
      lateral (
        (select ${name} as name from ${from} where ${name} > missing.name order by ${name} limit ${NEIGHBOURS})
        union all
        (select ${name} as name from ${from} where ${name} < missing.name order by ${name} desc limit ${NEIGHBOURS})
        ${isCaseless ? alike : sql``}
      ) as near`.execute(db);
  for (const row of rows) near.set(row.missing, [...(near.get(row.missing) ?? []), row.name]);
  return near;
}
