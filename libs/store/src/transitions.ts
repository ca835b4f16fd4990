import {
  type ConnectionState,
  connectionEvent,
  type HealthState,
  healthEvent,
  type NewEvent,
} from "@rollcall/domain";
import { sql } from "kysely";
import { toConnection, toHealth } from "./node-record.ts";
import { inRounds } from "./rounds.ts";
import type { Store, Tx } from "./store.ts";

/** A state to move to. Since when it holds is the database's. */
export interface StateChange<S extends string> {
  readonly state: S;
  readonly reason: string;
  readonly message: string;
  readonly actor: string;
}

/** What a replica observed of a node that it holds. */
export interface Transition {
  readonly nodeId: string;
  /** The session epoch under which it was observed. */
  readonly epoch: number;
  readonly connection?: StateChange<ConnectionState>;
  /** Detected health, before any mark. */
  readonly health?: StateChange<HealthState>;
}

/**
 * Write what was observed, in one transaction: rows that still belong to (replica, epoch) change, all others do not.
 * One event for each change that counts: a health change under an operator's mark, or to the same state, has none.
 * Answers the ids of the nodes that still belonged to the replica; forget the others.
 */
export async function writeTransitions(
  store: Store,
  replicaId: string,
  items: readonly Transition[],
): Promise<ReadonlySet<string>> {
  if (items.length === 0) return new Set();
  const { result } = await store.change(async (tx) => {
    const held = new Set<string>();
    const events: NewEvent[] = [];
    for (const round of inRounds(items, (item) => item.nodeId)) {
      const byNode = new Map(round.map((item) => [item.nodeId, item]));
      for (const before of await writeRound(tx, replicaId, round)) {
        held.add(before.node_id);
        const item = byNode.get(before.node_id);
        if (item !== undefined) events.push(...eventsOf(before, item));
      }
    }
    return { result: held, events };
  });
  return result;
}

type SessionBefore = Parameters<typeof toConnection>[0] &
  Parameters<typeof toHealth>[0] & {
    readonly node_id: string;
    readonly marked: boolean;
    readonly now: Date;
  };

/**
 * Lock the rows that still belong to the replica, in order of id, and write those that really change. Conditions are checked
 * again on the row as it is once it is locked, so whoever takes the next epoch first wins.
 */
async function writeRound(
  tx: Tx,
  replicaId: string,
  items: readonly Transition[],
): Promise<readonly SessionBefore[]> {
  const { rows } = await sql<SessionBefore>`
    with item as (
      select * from jsonb_to_recordset(${JSON.stringify(items)}::jsonb) as i (
        "nodeId" text, epoch integer, connection jsonb, health jsonb
      )
    ),
    before as (
      select s.*
      from node_sessions as s
      join item on item."nodeId" = s.node_id and item.epoch = s.epoch
      where s.replica_id = ${replicaId}
      order by s.node_id
      for no key update of s
    ),
    wanted as (
      select
        before.node_id,
        coalesce(item.connection ->> 'state', before.connection) as connection,
        coalesce(item.connection ->> 'reason', before.connection_reason) as connection_reason,
        coalesce(item.connection ->> 'message', before.connection_message) as connection_message,
        coalesce(item.connection ->> 'actor', before.connection_actor) as connection_actor,
        coalesce(item.health ->> 'state', before.health) as health,
        coalesce(item.health ->> 'reason', before.health_reason) as health_reason,
        coalesce(item.health ->> 'message', before.health_message) as health_message,
        coalesce(item.health ->> 'actor', before.health_actor) as health_actor
      from before
      join item on item."nodeId" = before.node_id
    ),
    written as (
      update node_sessions as s
      set
        connection_since =
          case when s.connection = wanted.connection then s.connection_since else now() end,
        connection = wanted.connection,
        connection_reason = wanted.connection_reason,
        connection_message = wanted.connection_message,
        connection_actor = wanted.connection_actor,
        health_since = case when s.health = wanted.health then s.health_since else now() end,
        health = wanted.health,
        health_reason = wanted.health_reason,
        health_message = wanted.health_message,
        health_actor = wanted.health_actor
      from wanted
      where s.node_id = wanted.node_id
        and (s.connection, s.connection_reason, s.connection_message, s.health, s.health_reason, s.health_message)
          is distinct from (
            wanted.connection, wanted.connection_reason, wanted.connection_message,
            wanted.health, wanted.health_reason, wanted.health_message
          )
    )
    select before.*, now()::timestamptz(3) as now from before order by before.node_id`.execute(tx);
  return rows;
}

function eventsOf(row: SessionBefore, item: Transition): readonly NewEvent[] {
  const subject = row.node_id;
  const sinceMs = row.now.getTime();
  const events: NewEvent[] = [];
  const connection = toConnection(row);
  if (item.connection !== undefined && item.connection.state !== connection.state) {
    const after = { ...item.connection, sinceMs };
    events.push(connectionEvent({ subject, before: connection, after }));
  }
  const health = toHealth(row);
  // Under a mark the node counts as UNHEALTHY before and after.
  if (item.health !== undefined && item.health.state !== health.state && !row.marked) {
    events.push(healthEvent({ subject, before: health, after: { ...item.health, sinceMs } }));
  }
  return events;
}
