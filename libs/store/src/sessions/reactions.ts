import { type LossAfter, lossAfterRelease, type Membership, mayHaveReaction, type NodeType } from "@rollcall/domain";
import { sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import { PREPARED } from "../database/pool.ts";
import type { Db, Tx } from "../database/store.ts";
import { type NodeRow, toLoss } from "../nodes/node-rows.ts";

/** A reaction that was allowed just now. */
export interface AllowedReaction {
  readonly nodeId: string;
  readonly group: string;
  readonly lostSinceMs: number;
}

/** Write the reaction to a node's loss. The caller has locked the row of the node's session. */
export function saveLoss(tx: Tx, nodeId: string, loss: LossAfter): Promise<void> {
  return saveLosses(tx, new Map([[nodeId, loss]]));
}

/**
 * Delete a node's loss. This does not wait for a transaction that is writing a loss: `allowReactions()` later drops
 * that loss.
 */
export async function dropLoss(tx: Tx, nodeId: string): Promise<void> {
  await sql`
    update node_sessions
    set reaction = null, loss = null, loss_group = null, lost_since = null
    where node_id = ${nodeId} and (reaction is not null or loss is not null)`.execute(tx);
}

/**
 * Allow pending reactions, oldest first: a limited number per group, for losses up to `upTo`. Nodes that reconnected
 * or were lost again are skipped, and so are nodes whose row another transaction is writing. Pending reactions of
 * nodes that are no longer approved are dropped.
 */
export async function allowReactions(
  tx: Tx,
  releases: readonly { readonly group: string; readonly most: number; readonly upTo: number }[],
): Promise<readonly AllowedReaction[]> {
  if (releases.length === 0) return [];
  const { rows } = await sql<DueRow>`
    select due.*, n.type, n.membership
    from ${rowsFrom(releases, sql`"group" text, most integer, "upTo" bigint`)} as r
    cross join lateral (
      select s.node_id, s.reaction, s.loss, s.loss_group, s.lost_since
      from node_sessions as s
      where s.reaction = 'PENDING' and s.loss_group = r.group and s.loss <= r."upTo"
      order by s.loss
      limit r.most
      -- The rows are not locked in the common order, so do not wait for any.
      for no key update of s skip locked
    ) as due
    join nodes as n on n.id = due.node_id`.execute(tx);
  const released = rows.map((row) => {
    const node = { type: row.type, membership: { state: row.membership } };
    return { nodeId: row.node_id, loss: lossAfterRelease(toLoss(row), mayHaveReaction(node)) };
  });
  await saveLosses(tx, new Map(released.map(({ nodeId, loss }) => [nodeId, loss])));
  return released.flatMap(({ nodeId, loss: { reaction, group, sinceMs } }) =>
    reaction === null ? [] : [{ nodeId, group: group ?? "", lostSinceMs: sinceMs ?? 0 }],
  );
}

/**
 * Keep reactions allowed until the transaction ends. Returns the given nodes that have an allowed reaction. Rows
 * that another transaction is writing are left out without waiting, because their node may have reconnected.
 */
export async function holdAllowed(tx: Tx, nodeIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ readonly id: string }>`${PREPARED}
    select s.node_id as id from node_sessions as s
    where s.node_id = any(${nodeIds}) and s.reaction = 'ALLOWED'
    for share of s skip locked`.execute(tx);
  return new Set(rows.map(({ id }) => id));
}

/** Find the last loss that is older than `ms`, among the nodes that are still lost; 0 when there is none. */
export async function lossBefore(db: Db, ms: number): Promise<number> {
  const { rows } = await sql<{ loss: bigint | null }>`
    select max(loss) as loss from node_sessions
    where loss is not null and lost_since < now() - ${ms} * interval '1 millisecond'`.execute(db);
  return Number(rows[0]?.loss ?? 0n);
}

/** The types of a loss's columns, for rowsFrom(). */
export const LOSS_COLUMNS = sql`reaction text, loss text, loss_group text, lost_since timestamptz`;

/**
 * The number to write for a loss in a row `i` of LOSS_COLUMNS. A new number is taken from the sequence only when the
 * loss is written.
 */
export const LOSS_NUMBER = sql`case i.loss when 'next' then nextval('losses') else i.loss::bigint end`;

/** Convert a loss to a row of LOSS_COLUMNS. Nulls are left out, because a JSON null is not an SQL null. */
export function toLossColumns({ reaction, number, group, sinceMs }: LossAfter) {
  return {
    ...(reaction === null ? {} : { reaction }),
    ...(number === null ? {} : { loss: String(number) }),
    ...(group === null ? {} : { loss_group: group }),
    ...(sinceMs === null ? {} : { lost_since: new Date(sinceMs) }),
  };
}

async function saveLosses(tx: Tx, losses: ReadonlyMap<string, LossAfter>): Promise<void> {
  if (losses.size === 0) return;
  const items = [...losses].map(([nodeId, loss]) => ({ nodeId, ...toLossColumns(loss) }));
  await sql`${PREPARED}
    update node_sessions as s
    set reaction = i.reaction, loss = ${LOSS_NUMBER}, loss_group = i.loss_group, lost_since = i.lost_since
    from ${rowsFrom(items, sql`"nodeId" text, ${LOSS_COLUMNS}`)} as i
    where s.node_id = i."nodeId"`.execute(tx);
}

type DueRow = Parameters<typeof toLoss>[0] & {
  readonly node_id: NodeRow["id"];
  readonly type: NodeType;
  readonly membership: Membership["state"];
};
