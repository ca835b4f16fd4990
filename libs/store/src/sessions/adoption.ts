import { type ConnectionState, connectionAfter, connectionEvent } from "@rollcall/domain";
import { sql } from "kysely";
import type { LaneStore, Tx } from "../database/store.ts";
import { toConnection } from "../nodes/node-rows.ts";
import { type OwnedSession, toOwnedSession } from "./sessions.ts";

/** A node taken over from a replica that is gone. */
export interface AdoptedNode extends OwnedSession {
  readonly previousReplicaId: string;
  readonly connectionBefore: ConnectionState;
}

/**
 * Take over nodes whose replica holds no lease any more: next epoch, DISCONNECTED for reason REPLICA_LOST, and an event
 * for each that was connected. Takes at most `limit`; none unless `replicaId` itself holds a lease. Concurrent adopters
 * share the nodes among them. Call it again while it answers as many as the limit.
 */
export async function adoptOrphans(
  store: LaneStore,
  replicaId: string,
  limit: number,
): Promise<readonly AdoptedNode[]> {
  const { result } = await store.change(async (tx) => {
    const rows = await takeOrphans(tx, replicaId, limit);
    const adopted = rows.map((row) => toAdopted(row, replicaId));
    const events = adopted.flatMap(({ nodeId: subject, connection: after, connectionBefore, ...of }, index) => {
      const row = rows[index];
      if (row === undefined || connectionBefore === after.state) return [];
      return [connectionEvent({ subject, before: toConnection(row), after, displaces: of.previousReplicaId })];
    });
    return { result: adopted, events };
  });
  return result;
}

/** A session as it was before it was taken, but for its epoch, which is the new one. */
type TakenRow = Parameters<typeof toOwnedSession>[0] & {
  readonly previous_replica_id: string;
  readonly now: Date;
};

async function takeOrphans(tx: Tx, replicaId: string, limit: number): Promise<readonly TakenRow[]> {
  const { rows } = await sql<TakenRow>`
    with recursive holder as (
      -- The few distinct replicas of many sessions, each found by one step in the index.
      select min(replica_id) as replica_id from node_sessions where replica_id is not null
      union all
      select (
        select min(s.replica_id) from node_sessions as s where s.replica_id > holder.replica_id
      )
      from holder
      where holder.replica_id is not null
    ),
    lost as (
      select replica_id
      from holder
      where replica_id is not null
        -- The process's own lease: one that says who leads says nothing about its holder.
        and not exists (select from leases where leases.name = holder.replica_id)
    ),
    before as (
      -- One replica after the other, so that the index is used: for all at once, Postgres reads every session.
      select session.*
      from lost
      cross join lateral (
        select s.*
        from node_sessions as s
        where s.replica_id = lost.replica_id and s.node_type = 'COMPUTE'
        order by s.node_id
        limit ${limit}
        for no key update skip locked
      ) as session
      where exists (select from leases where name = ${replicaId})
      limit ${limit}
    ),
    taken as (
      update node_sessions as s
      set
        replica_id = ${replicaId},
        epoch = s.epoch + 1,
        connection = ${LOST.state},
        connection_since = case when s.connection = ${LOST.state} then s.connection_since else now() end,
        connection_reason = case when s.connection = ${LOST.state} then s.connection_reason else ${LOST.reason} end,
        connection_message = case when s.connection = ${LOST.state} then s.connection_message else ${LOST.message} end,
        connection_actor = case when s.connection = ${LOST.state} then s.connection_actor else ${actorOf(replicaId)} end
      from before
      where s.node_id = before.node_id
      returning s.node_id, s.epoch
    )
    select
      taken.node_id, taken.epoch, before.replica_id as previous_replica_id, now()::timestamptz(3) as now,
      before.marked,
      before.connection, before.connection_since, before.connection_reason,
      before.connection_message, before.connection_actor,
      before.health, before.health_since, before.health_reason,
      before.health_message, before.health_actor, before.detected,
      nodes.membership, nodes.membership_since, nodes.membership_reason,
      nodes.membership_message, nodes.membership_actor
    from taken
    join before on before.node_id = taken.node_id
    join nodes on nodes.id = taken.node_id
    order by taken.node_id`.execute(tx);
  return rows;
}

const LOST = connectionAfter("replica-lost", { actor: "", atMs: 0 });

function actorOf(replicaId: string): string {
  return `replica:${replicaId}`;
}

function toAdopted(row: TakenRow, replicaId: string): AdoptedNode {
  const held = toOwnedSession(row);
  const lost = connectionAfter("replica-lost", {
    actor: actorOf(replicaId),
    atMs: row.now.getTime(),
  });
  return {
    ...held,
    connection: held.connection.state === "CONNECTED" ? lost : held.connection,
    connectionBefore: held.connection.state,
    previousReplicaId: row.previous_replica_id,
  };
}
