import type { DeclaredRecord } from "@rollcall/domain";
import { sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import type { Db, Tx } from "../database/store.ts";

/** An applied object to store. */
export interface NewDeclaredObject extends DeclaredRecord {
  readonly name: string;
  /**
   * The node that the object is about; the store deletes the object together with the node. Null if the object
   * is not about a single node.
   */
  readonly nodeId: string | null;
  /** The caller that applied the object. */
  readonly actor: string;
}

/**
 * Block other applies of declared state until the transaction ends, so that a plan stays valid while it is
 * carried out.
 */
export async function lockDeclaredState(tx: Tx): Promise<void> {
  await sql`select pg_advisory_xact_lock(${DECLARED_STATE_LOCK}::bigint)`.execute(tx);
}

/** The key of the advisory lock for applies: any number that no other lock uses. */
const DECLARED_STATE_LOCK = "4417092836650192817";

/** Count the stored applied objects. */
export async function countDeclaredObjects(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom("declared_objects")
    .select(sql<number>`count(*)::integer`.as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

/**
 * Read the stored objects with these names, and at most `limit` others that the owner applied.
 *
 * @param owner empty for no owner.
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

/** Store applied objects, replacing earlier versions of them. */
export async function saveDeclaredObjects(tx: Tx, objects: readonly NewDeclaredObject[]): Promise<void> {
  if (objects.length === 0) return;
  // Pass all objects as one parameter, because a statement can have at most 65,535 parameters.
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

/** Delete applied objects. */
export async function forgetDeclaredObjects(tx: Tx, names: readonly string[]): Promise<void> {
  await tx.deleteFrom("declared_objects").where(sql<boolean>`name = any(${names}::text[])`).execute();
}
