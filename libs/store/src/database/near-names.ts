import { type Refusal, suggestName } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "./store.ts";

/** What has names, where they are kept, and whether an index finds them in whatever case. */
const KINDS = {
  node: { table: "nodes", column: "id", isCaseless: true },
  bannedId: { table: "bans", column: "node_id", isCaseless: false },
  job: { table: "jobs", column: "name", isCaseless: false },
  execution: { table: "executions", column: "id", isCaseless: false },
  webhook: { table: "webhooks", column: "name", isCaseless: false },
  joinToken: { table: "join_tokens", column: "id", isCaseless: false },
  accessToken: { table: "access_tokens", column: "id", isCaseless: false },
} as const;

/** A kind of objects that have names. */
type NamedKind = keyof typeof KINDS;

/** Names on each side that are looked at. */
const NEIGHBOURS = 4;
/** Anything else names no object. */
const NAME = /^[\x21-\x7e]{1,256}$/;

/**
 * Add the name that was most likely meant to the refusal of a missing object. Its caller must be allowed to list
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
 * Names that are next to missing ones in their order: those that begin like them are. Each missing name costs a few
 * rows of an index, however many objects there are.
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
