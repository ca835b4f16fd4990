import type { DeclaredRecord } from "@rollcall/domain";
import { sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import type { Db, Tx } from "../database/store.ts";

/** What is remembered of an object that was applied. */
export interface NewDeclaredObject extends DeclaredRecord {
  readonly name: string;
  /** The node that it is about, with which it goes; null for an object that is about no single node. */
  readonly nodeId: string | null;
  /** Who applied it: the caller. */
  readonly actor: string;
}

/**
 * Keep others from applying declared state until the transaction ends: what a plan says holds for as long as it takes
 * to carry it out.
 */
export async function lockDeclaredState(tx: Tx): Promise<void> {
  await sql`select pg_advisory_xact_lock(${DECLARED_STATE_LOCK}::bigint)`.execute(tx);
}

/** Any number that no other lock of the record has. */
const DECLARED_STATE_LOCK = "4417092836650192817";

/** How many objects are remembered. */
export async function countDeclaredObjects(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom("declared_objects")
    .select(sql<number>`count(*)::integer`.as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

/**
 * What is remembered of objects: those of the names, and at most `limit` more that the owner applied.
 *
 * @param owner empty for none.
 */
export async function readDeclaredObjects(
  db: Db,
  { names, owner, limit }: { readonly names: readonly string[]; readonly owner: string; readonly limit: number },
): Promise<ReadonlyMap<string, DeclaredRecord>> {
  const columns = ["name", "owner", "fields"] as const;
  const named = await db
    .selectFrom("declared_objects")
    .select(columns)
    .where(sql<boolean>`name = any(${names}::text[])`)
    .execute();
  const owned =
    owner === ""
      ? []
      : await db
          .selectFrom("declared_objects")
          .select(columns)
          .where("owner", "=", owner)
          .where(sql<boolean>`name <> all(${names}::text[])`)
          .orderBy("name")
          .limit(limit)
          .execute();
  return new Map([...named, ...owned].map(({ name, owner: by, fields }) => [name, { owner: by, fields }]));
}

/** Remember objects, in place of what was remembered of them. */
export async function saveDeclaredObjects(tx: Tx, objects: readonly NewDeclaredObject[]): Promise<void> {
  if (objects.length === 0) return;
  // One parameter for all of them: a statement cannot have more than 65,535.
  await sql`
    insert into declared_objects (name, owner, fields, node_id, applied_by)
    select o.name, o.owner, o.fields, o."nodeId", o.actor from ${rowsFrom(objects, OBJECT_COLUMNS)} as o
    on conflict on constraint declared_objects_pkey do update set
      owner = excluded.owner,
      fields = excluded.fields,
      node_id = excluded.node_id,
      applied_by = excluded.applied_by,
      applied_at = now()
  `.execute(tx);
}

const OBJECT_COLUMNS = sql`name text, owner text, fields jsonb, "nodeId" text, actor text`;

/** Forget who applied objects. */
export async function forgetDeclaredObjects(tx: Tx, names: readonly string[]): Promise<void> {
  await tx.deleteFrom("declared_objects").where(sql<boolean>`name = any(${names}::text[])`).execute();
}
