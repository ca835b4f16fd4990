import { type Ban, caselessId, type NewBan } from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import { PREPARED } from "../database/pool.ts";
import type { BansTable } from "../database/schema.ts";
import type { Db, Tx } from "../database/store.ts";

/** Ids and keys. */
export interface BannableNames {
  readonly nodeIds: readonly string[];
  readonly fingerprints: readonly string[];
  /** Whether ids are meant in whatever case. Default false. */
  readonly anyCase?: boolean;
}

/**
 * The bans on any of these ids and keys, the oldest first. To admit new nodes, call `beginAdmission()` before, or
 * a ban of a node that is only about to be could be overlooked.
 */
export async function findBans(db: Db, names: BannableNames): Promise<readonly Ban[]> {
  const isOnId =
    names.anyCase === true
      ? sql`lower(node_id) = any(${names.nodeIds.map(caselessId)}::text[])`
      : sql`node_id = any(${[...names.nodeIds]}::text[])`;
  const { rows } = await sql<Selectable<BansTable>>`${PREPARED}
    select id, node_id, fingerprint, reason, actor, at from bans
    where ${isOnId}
      or fingerprint = any(${[...names.fingerprints]}::text[])
    order by id`.execute(db);
  return rows.map(toBan);
}

/**
 * Wait for all that admit nodes, and keep others from placing one until this transaction ends. Comes before any row is
 * locked.
 */
export async function lockBans(tx: Tx): Promise<void> {
  await sql`select pg_advisory_xact_lock(${BANS_LOCK})`.execute(tx);
}

/** Place a ban, under `lockBans()`. Fails when its id or key is banned already: ask `findBans()` first. */
export async function insertBan(tx: Tx, ban: NewBan): Promise<Ban> {
  const row = await tx
    .insertInto("bans")
    .values({
      node_id: ban.nodeId,
      fingerprint: ban.fingerprint,
      reason: ban.reason,
      actor: ban.actor,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return toBan(row);
}

/** Lift bans by their ids; those that were still there, the oldest first. */
export async function deleteBans(tx: Tx, ids: readonly bigint[]): Promise<readonly Ban[]> {
  if (ids.length === 0) return [];
  const rows = await tx.deleteFrom("bans").where("id", "in", ids).returningAll().execute();
  return rows.map(toBan).sort((left, right) => (left.id < right.id ? -1 : 1));
}

/** Bans, the newest first, at most `limit`, of those older than the ban `before`; null for the newest. */
export async function listBans(
  db: Db,
  page: { readonly limit: number; readonly before: bigint | null },
): Promise<readonly Ban[]> {
  let query = db.selectFrom("bans").selectAll().orderBy("id", "desc").limit(page.limit);
  if (page.before !== null) query = query.where("id", "<", page.before);
  return (await query.execute()).map(toBan);
}

/** Names the lock of all bans; any number will do that no other advisory lock has. */
export const BANS_LOCK = 5_226_011;

function toBan(row: Selectable<BansTable>): Ban {
  return {
    id: row.id,
    nodeId: row.node_id,
    fingerprint: row.fingerprint,
    reason: row.reason,
    actor: row.actor,
    atMs: row.at.getTime(),
  };
}
