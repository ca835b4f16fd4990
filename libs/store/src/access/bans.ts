import { type Ban, caselessId, type NewBan } from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import { PREPARED } from "../database/pool.ts";
import type { BansTable } from "../database/schema.ts";
import type { Db, Tx } from "../database/store.ts";

/** Node ids and key fingerprints that can be banned. */
export interface BannableNames {
  readonly nodeIds: readonly string[];
  readonly fingerprints: readonly string[];
  /** Whether ids match regardless of case. Default false. */
  readonly anyCase?: boolean;
}

/**
 * Find the bans on any of these ids and keys, oldest first. To admit new nodes, call `beginAdmission()` first:
 * otherwise findBans() could miss a ban that is being added concurrently.
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
 * Wait for transactions that admit nodes, and block new ones until this transaction ends. Must be called before the
 * transaction locks any row.
 */
export async function lockBans(tx: Tx): Promise<void> {
  await sql`select pg_advisory_xact_lock(${BANS_LOCK})`.execute(tx);
}

/**
 * Add a ban. The caller has called lockBans(). Fails when the id or key is already banned: call findBans() first.
 */
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

/** Lift bans by id. Returns the bans that existed, oldest first. */
export async function deleteBans(tx: Tx, ids: readonly bigint[]): Promise<readonly Ban[]> {
  if (ids.length === 0) return [];
  const rows = await tx.deleteFrom("bans").where("id", "in", ids).returningAll().execute();
  return rows.map(toBan).sort((left, right) => (left.id < right.id ? -1 : 1));
}

/** Read at most `limit` bans that are older than the ban `before`, newest first. With null, start at the newest. */
export async function listBans(
  db: Db,
  page: { readonly limit: number; readonly before: bigint | null },
): Promise<readonly Ban[]> {
  let query = db.selectFrom("bans").selectAll().orderBy("id", "desc").limit(page.limit);
  if (page.before !== null) query = query.where("id", "<", page.before);
  return (await query.execute()).map(toBan);
}

/** The key of the advisory lock for all bans: any number that no other advisory lock uses. */
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
