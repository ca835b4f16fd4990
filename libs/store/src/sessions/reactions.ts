import type { ReactionStep } from "@rollcall/domain";
import { sql } from "kysely";
import { PREPARED } from "../database/pool.ts";
import { rowsFrom } from "../database/rows-from.ts";
import type { Db, Tx } from "../database/store.ts";

/** A node whose detected health has changed; its session's row is locked. */
export interface ReactionItem {
  readonly nodeId: string;
  readonly step: ReactionStep;
  /** The node's group of the brake; "" for none. */
  readonly group: string;
}

/** A reaction that was allowed. */
export interface AllowedReaction {
  readonly nodeId: string;
  readonly group: string;
  readonly lostSinceMs: number;
}

/**
 * Write what becomes of reactions, and answer those that were allowed at once. Only approved nodes have any: it is read
 * here anew, under the lock of the session's row.
 */
export async function saveReactions(tx: Tx, items: readonly ReactionItem[]): Promise<readonly AllowedReaction[]> {
  if (items.length === 0) return [];
  const { rows } = await sql<AllowedRow & { reaction: string | null; loss: bigint | null }>`${PREPARED}
    update node_sessions as s
    set
      reaction = case item.step
        when 'lost' then 'PENDING'
        when 'left' then 'ALLOWED'
        -- Under a mark, or while it flaps, it is not HEALTHY for anybody else.
        else case when s.marked or s.health <> 'HEALTHY' then nullif(s.reaction, 'PENDING') end
      end,
      loss = case when item.step = 'lost' then nextval('losses') end,
      loss_group = case when item.step = 'lost' then item.group end,
      lost_since = case
        when item.step = 'back' and not s.marked and s.health = 'HEALTHY' then null
        else coalesce(s.lost_since, now())
      end
    from ${rowsFrom(items, sql`"nodeId" text, step text, "group" text`)} as item
    join nodes as n on n.id = item."nodeId"
    where s.node_id = item."nodeId"
      and case
        when item.step = 'back' then s.reaction is not null or s.loss is not null
        else n.membership = 'APPROVED' and n.type = 'COMPUTE'
      end
    returning s.node_id, item.group as loss_group, s.lost_since, s.reaction, s.loss`.execute(tx);
  const left = new Set(items.filter(({ step }) => step === "left").map(({ nodeId }) => nodeId));
  return rows.filter(({ node_id }) => left.has(node_id)).map(toAllowed);
}

/** Allow the reaction to an approved node that an operator declares UNHEALTHY; null when that was allowed before. */
export async function allowMarked(tx: Tx, nodeId: string): Promise<AllowedReaction | null> {
  const { rows } = await sql<AllowedRow>`
    update node_sessions as s
    set reaction = 'ALLOWED', lost_since = coalesce(s.lost_since, now())
    from nodes as n
    where s.node_id = ${nodeId} and n.id = s.node_id
      and n.type = 'COMPUTE' and n.membership = 'APPROVED'
      and s.reaction is distinct from 'ALLOWED'
    returning s.node_id, coalesce(s.loss_group, '') as loss_group, s.lost_since`.execute(tx);
  return rows[0] === undefined ? null : toAllowed(rows[0]);
}

/** A mark was cleared: a node that was detected to be HEALTHY has no reaction any more. */
export async function clearMarked(tx: Tx, nodeId: string): Promise<void> {
  await sql`
    update node_sessions set reaction = null, lost_since = null
    where node_id = ${nodeId} and health = 'HEALTHY'`.execute(tx);
}

/**
 * A node may not belong any more: what is decided about it says all there is to react to. It does not wait for a loss
 * that is being written at the same time: `allowReactions()` drops what that leaves behind.
 */
export async function dropReaction(tx: Tx, nodeId: string): Promise<void> {
  await sql`
    update node_sessions
    set reaction = null, loss = null, loss_group = null, lost_since = null
    where node_id = ${nodeId} and (reaction is not null or loss is not null)`.execute(tx);
}

/**
 * Allow reactions that are still pending, the oldest first, of each group at most so many and only losses up to `upTo`.
 * A node that came back, or was lost again, in between is left alone; so is one whose row somebody else is writing just
 * now. What is pending of a node that is not approved any more is dropped.
 */
export async function allowReactions(
  tx: Tx,
  releases: readonly { readonly group: string; readonly most: number; readonly upTo: number }[],
): Promise<readonly AllowedReaction[]> {
  if (releases.length === 0) return [];
  const { rows } = await sql<AllowedRow | { readonly lost_since: null }>`
    with due as (
      select found.node_id
      from ${rowsFrom(releases, sql`"group" text, most integer, "upTo" bigint`)} as r
      cross join lateral (
        select s.node_id
        from node_sessions as s
        where s.reaction = 'PENDING' and s.loss_group = r.group and s.loss <= r."upTo"
        order by s.loss
        limit r.most
        -- Rows are locked in no order that others keep to, so none is waited for.
        for no key update of s skip locked
      ) as found
    )
    update node_sessions as s
    set
      reaction = case when n.membership = 'APPROVED' then 'ALLOWED' end,
      loss = case when n.membership = 'APPROVED' then s.loss end,
      loss_group = case when n.membership = 'APPROVED' then s.loss_group end,
      lost_since = case when n.membership = 'APPROVED' then s.lost_since end
    from due join nodes as n on n.id = due.node_id
    where s.node_id = due.node_id and s.reaction = 'PENDING'
    returning s.node_id, s.loss_group, s.lost_since`.execute(tx);
  return rows.flatMap((row) => (row.lost_since === null ? [] : [toAllowed(row)]));
}

/** The last loss that is older than `ms`, of those that are still lost: 0 when there is none. */
export async function lossBefore(db: Db, ms: number): Promise<number> {
  const { rows } = await sql<{ loss: bigint | null }>`
    select max(loss) as loss from node_sessions
    where loss is not null and lost_since < now() - ${ms} * interval '1 millisecond'`.execute(db);
  return Number(rows[0]?.loss ?? 0n);
}

interface AllowedRow {
  readonly node_id: string;
  readonly loss_group: string;
  readonly lost_since: Date;
}

function toAllowed(row: AllowedRow): AllowedReaction {
  return { nodeId: row.node_id, group: row.loss_group, lostSinceMs: row.lost_since.getTime() };
}
