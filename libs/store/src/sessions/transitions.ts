import {
  type MembershipState,
  mayHaveReaction,
  type NewEvent,
  type NodeType,
  planTransition,
  type SessionStates,
  type StoredSession,
  type Transition,
} from "@rollcall/domain";
import { sql } from "kysely";
import { inRounds, rowsFrom } from "../database/batches.ts";
import { PREPARED } from "../database/pool.ts";
import type { LaneStore, Tx } from "../database/store.ts";
import { toConnection, toHealth, toHistory, toLoss } from "../nodes/node-rows.ts";
import { LOSS_COLUMNS, LOSS_NUMBER, toLossColumns } from "./reactions.ts";

/**
 * Write observations in one transaction. Only rows that still belong to the replica and the epoch are changed.
 * planTransition() decides each change and its events. Returns the ids of the nodes that still belong to the
 * replica; the caller should forget the others.
 */
export async function writeTransitions(
  store: LaneStore,
  replicaId: string,
  items: readonly Transition[],
): Promise<ReadonlySet<string>> {
  if (items.length === 0) return new Set();
  const { result } = await store.change(async (tx) => {
    const held = new Set<string>();
    const events: NewEvent[] = [];
    for (const round of inRounds(items, (item) => item.nodeId)) {
      const written = await writeRound(tx, replicaId, round);
      for (const nodeId of written.held) held.add(nodeId);
      events.push(...written.events);
    }
    return { result: held, events };
  });
  return result;
}

/**
 * Lock the rows that still belong to the replica, in order of id, and write those that change. Conditions are
 * checked again on the locked row, so the first transaction to take the next epoch wins.
 */
async function writeRound(
  tx: Tx,
  replicaId: string,
  items: readonly Transition[],
): Promise<{ readonly held: readonly string[]; readonly events: readonly NewEvent[] }> {
  const byNode = new Map(items.map((item) => [item.nodeId, item]));
  const locked = (await lockRound(tx, replicaId, items)).flatMap((row) => {
    const item = byNode.get(row.node_id);
    return item === undefined ? [] : [{ item, before: toSession(row), nowMs: row.now.getTime() }];
  });
  const held = locked.map(({ item }) => item.nodeId);
  const unwell = locked.filter(({ item }) => item.health !== undefined && item.health.state !== "HEALTHY");
  const reacting = await findReacting(
    tx,
    unwell.map(({ item }) => item.nodeId),
  );
  const events: NewEvent[] = [];
  const writes = new Map<string, SessionStates>();
  for (const { item, before, nowMs } of locked) {
    const planned = planTransition(before, item, { mayHaveReaction: reacting.has(item.nodeId), nowMs });
    if (planned.after !== null) writes.set(item.nodeId, planned.after);
    events.push(...planned.events);
  }
  await saveSessionStates(tx, writes);
  return { held, events };
}

/** Find which of these nodes can have a reaction. Their sessions are locked, but the nodes' rows are not. */
async function findReacting(tx: Tx, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const { rows } = await sql<{ id: string; type: NodeType; state: MembershipState }>`${PREPARED}
    select n.id, n.type, n.membership as state from nodes as n
    join ${rowsFrom(
      ids.map((nodeId) => ({ nodeId })),
      sql`"nodeId" text`,
    )} as i on i."nodeId" = n.id`.execute(tx);
  const reacting = rows.filter(({ type, state }) => mayHaveReaction({ type, membership: { state } }));
  return new Set(reacting.map(({ id }) => id));
}

type SessionRow = Parameters<typeof toConnection>[0] &
  Parameters<typeof toHealth>[0] &
  Parameters<typeof toHistory>[0] &
  Parameters<typeof toLoss>[0] & { readonly node_id: string; readonly marked: boolean; readonly now: Date };

async function lockRound(tx: Tx, replicaId: string, items: readonly Transition[]): Promise<readonly SessionRow[]> {
  const keys = items.map(({ nodeId, epoch }) => ({ nodeId, epoch }));
  const { rows } = await sql<SessionRow>`${PREPARED}
    with item as (select * from ${rowsFrom(keys, sql`"nodeId" text, epoch integer`)} as i),
    before as (
      select
        s.node_id, s.marked, s.outages, s.flapping_since,
        s.reaction, s.loss, s.loss_group, s.lost_since,
        s.connection, s.connection_since, s.connection_reason, s.connection_message, s.connection_actor,
        s.health, s.health_since, s.health_reason, s.health_message, s.health_actor
      from node_sessions as s
      join item on item."nodeId" = s.node_id and item.epoch = s.epoch
      where s.replica_id = ${replicaId}
      order by s.node_id
      for no key update of s
    )
    select before.*, now()::timestamptz(3) as now from before order by before.node_id`.execute(tx);
  return rows;
}

function toSession(row: SessionRow): StoredSession {
  return {
    nodeId: row.node_id,
    connection: toConnection(row),
    detectedHealth: toHealth(row),
    history: toHistory(row),
    marked: row.marked,
    loss: toLoss(row),
  };
}

const STATE_COLUMNS = sql`
  "nodeId" text,
  connection text, connection_since timestamptz, connection_reason text,
  connection_message text, connection_actor text,
  health text, health_since timestamptz, health_reason text, health_message text,
  health_actor text,
  outages jsonb, flapping_since timestamptz,
  ${LOSS_COLUMNS}`;

/** Write the new states of sessions, keyed by node id. The caller has locked their rows. */
async function saveSessionStates(tx: Tx, states: ReadonlyMap<string, SessionStates>): Promise<void> {
  if (states.size === 0) return;
  const items = [...states].map(([nodeId, after]) => ({ nodeId, ...toColumns(after) }));
  await sql`${PREPARED}
    update node_sessions as s
    set
      connection = i.connection, connection_since = i.connection_since,
      connection_reason = i.connection_reason, connection_message = i.connection_message,
      connection_actor = i.connection_actor,
      health = i.health, health_since = i.health_since, health_reason = i.health_reason,
      health_message = i.health_message, health_actor = i.health_actor,
      outages = i.outages, flapping_since = i.flapping_since,
      reaction = i.reaction, loss = ${LOSS_NUMBER}, loss_group = i.loss_group, lost_since = i.lost_since
    from ${rowsFrom(items, STATE_COLUMNS)} as i
    where s.node_id = i."nodeId"`.execute(tx);
}

function toColumns({ connection, health, history, loss }: SessionStates) {
  const { outages, flappingSinceMs } = history;
  return {
    connection: connection.state,
    connection_since: new Date(connection.sinceMs),
    connection_reason: connection.reason,
    connection_message: connection.message,
    connection_actor: connection.actor,
    health: health.state,
    health_since: new Date(health.sinceMs),
    health_reason: health.reason,
    health_message: health.message,
    health_actor: health.actor,
    outages,
    ...(flappingSinceMs === null ? {} : { flapping_since: new Date(flappingSinceMs) }),
    ...toLossColumns(loss),
  };
}
