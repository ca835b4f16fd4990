import {
  type ConnectionState,
  type HealthState,
  type Json,
  type NewEvent,
  reactionStep,
  reactionsAllowedEvent,
} from "@rollcall/domain";
import { sql } from "kysely";
import { PREPARED } from "../database/pool.ts";
import { inRounds } from "../database/rounds.ts";
import { rowsFrom } from "../database/rows-from.ts";
import type { LaneStore, Tx } from "../database/store.ts";
import { toDetectedHealth } from "../nodes/node-record.ts";
import { type ReactionItem, saveReactions } from "./reactions.ts";
import { planTransition, type SessionAfter, type SessionBefore } from "./transition-plan.ts";

/** A state to move to. Since when it holds is the database's. */
export interface StateChange<S extends string> {
  readonly state: S;
  readonly reason: string;
  readonly message: string;
  readonly actor: string;
  /** What it was concluded from, for the event of the change. */
  readonly evidence?: Json;
}

/** What a replica observed of a node that it holds. */
export interface Transition {
  readonly nodeId: string;
  /** The session epoch under which it was observed. */
  readonly epoch: number;
  readonly connection?: StateChange<ConnectionState>;
  /** Detected health, before any mark. */
  readonly health?: StateChange<HealthState>;
  /** For how long its policy holds a node that flaps; that of the default policy when it is left out. */
  readonly flappingHoldMs?: number;
  /** The node's group of the brake, in case that it is lost; none when it is left out or "". */
  readonly group?: string;
}

/**
 * Write what was observed, in one transaction: rows that still belong to (replica, epoch) change, all others do not.
 * One event for each change that counts: a health change under an operator's mark, or to the same state, has none, nor
 * has one of a node that is held for flapping. Answers the ids of the nodes that still belonged to the replica; forget
 * the others.
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
 * Lock the rows that still belong to the replica, in order of id, and write those that really change. Conditions are
 * checked again on the row as it is once it is locked, so whoever takes the next epoch first wins.
 */
async function writeRound(
  tx: Tx,
  replicaId: string,
  items: readonly Transition[],
): Promise<{ readonly held: readonly string[]; readonly events: readonly NewEvent[] }> {
  const byNode = new Map(items.map((item) => [item.nodeId, item]));
  const rows = await lockRound(tx, replicaId, items);
  const events: NewEvent[] = [];
  const writes = new Map<string, SessionAfter>();
  for (const row of rows) {
    const item = byNode.get(row.node_id);
    if (item === undefined) continue;
    const planned = planTransition(row, item);
    if (planned.after !== null) writes.set(row.node_id, planned.after);
    events.push(...planned.events);
  }
  await saveSessionStates(tx, writes);
  events.push(...(await saveSteps(tx, rows, byNode)));
  return { held: rows.map(({ node_id }) => node_id), events };
}

/** Write what becomes of reactions; the events of those that are allowed at once. */
async function saveSteps(
  tx: Tx,
  rows: readonly SessionBefore[],
  byNode: ReadonlyMap<string, Transition>,
): Promise<readonly NewEvent[]> {
  const items = rows.flatMap((row): readonly ReactionItem[] => {
    const { health, group = "" } = byNode.get(row.node_id) ?? {};
    if (health === undefined) return [];
    const before = { detected: toDetectedHealth(row).state, reaction: row.reaction };
    const step = reactionStep(before, health);
    return step === null ? [] : [{ nodeId: row.node_id, step, group }];
  });
  const allowed = await saveReactions(tx, items);
  return allowed.map(({ nodeId: subject, group, lostSinceMs }) => {
    const { actor = "", message = "" } = byNode.get(subject)?.health ?? {};
    const why = { reason: "AGENT_SHUTDOWN", actor, message } as const;
    return reactionsAllowedEvent({ subject, group, brake: "NORMAL", lostSinceMs, ...why });
  });
}

async function lockRound(tx: Tx, replicaId: string, items: readonly Transition[]): Promise<readonly SessionBefore[]> {
  const keys = items.map(({ nodeId, epoch }) => ({ nodeId, epoch }));
  const { rows } = await sql<SessionBefore>`${PREPARED}
    with item as (select * from ${rowsFrom(keys, sql`"nodeId" text, epoch integer`)} as i),
    before as (
      select
        s.node_id, s.marked, s.reaction, s.detected, s.health_changes, s.flapping_since,
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

const STATE_COLUMNS = sql`
  "nodeId" text,
  connection text, connection_since timestamptz, connection_reason text,
  connection_message text, connection_actor text,
  health text, health_since timestamptz, health_reason text, health_message text,
  health_actor text,
  detected jsonb, health_changes jsonb, flapping_since timestamptz`;

/** Write what sessions become, by node id. Their rows are locked. */
export async function saveSessionStates(tx: Tx, states: ReadonlyMap<string, SessionAfter>): Promise<void> {
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
      detected = i.detected, health_changes = i.health_changes, flapping_since = i.flapping_since,
      -- A node that is HEALTHY for everybody has no reaction left.
      reaction = case when i.health <> 'HEALTHY' or s.marked then s.reaction end,
      loss = case when i.health <> 'HEALTHY' or s.marked then s.loss end,
      loss_group = case when i.health <> 'HEALTHY' or s.marked then s.loss_group end,
      lost_since = case when i.health <> 'HEALTHY' or s.marked then s.lost_since end
    from ${rowsFrom(items, STATE_COLUMNS)} as i
    where s.node_id = i."nodeId"`.execute(tx);
}

function toColumns({ connection, health, detected, changes, flappingSinceMs }: SessionAfter) {
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
    // Left out where it is null: a null in it would be one of JSON, which is not that of a column.
    ...(detected === null ? {} : { detected }),
    health_changes: changes,
    ...(flappingSinceMs === null ? {} : { flapping_since: new Date(flappingSinceMs) }),
  };
}
