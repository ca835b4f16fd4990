import { adoptSession, type Connection, type ConnectionState, type NewEvent } from "@rollcall/domain";
import { sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import { PREPARED } from "../database/pool.ts";
import type { LaneStore, Tx } from "../database/store.ts";
import { type OwnedSession, toOwnedSession } from "./sessions.ts";

/** A node that was taken over from a dead replica. */
export interface AdoptedNode extends OwnedSession {
  readonly previousReplicaId: string;
  readonly connectionBefore: ConnectionState;
}

/**
 * Take over nodes whose replica no longer holds a lease. Each node gets the next epoch, and adoptSession() decides
 * its connection. Takes at most `limit` nodes, and none unless `replicaId` itself holds a lease. Concurrent adopters
 * share the nodes. As long as this returns `limit` nodes, call it again.
 */
export async function adoptOrphans(
  store: LaneStore,
  replicaId: string,
  limit: number,
): Promise<readonly AdoptedNode[]> {
  const { result } = await store.change(async (tx) => {
    const rows = await lockOrphans(tx, replicaId, limit);
    const adopted: AdoptedNode[] = [];
    const events: NewEvent[] = [];
    for (const row of rows) {
      const orphan = { ...toOwnedSession(row), previousReplicaId: row.previous_replica_id };
      const adoption = adoptSession(orphan, { replicaId, atMs: row.now.getTime() });
      adopted.push({
        ...orphan,
        epoch: orphan.epoch + 1,
        connection: adoption?.connection ?? orphan.connection,
        connectionBefore: orphan.connection.state,
      });
      if (adoption !== null) events.push(adoption.event);
    }
    await take(tx, replicaId, adopted);
    return { result: adopted, events };
  });
  return result;
}

type OrphanRow = Parameters<typeof toOwnedSession>[0] & {
  readonly previous_replica_id: string;
  readonly now: Date;
};

async function lockOrphans(tx: Tx, replicaId: string, limit: number): Promise<readonly OrphanRow[]> {
  const { rows } = await sql<OrphanRow>`
    with recursive holder as (
      -- The few distinct replicas of many sessions, each found by one index lookup.
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
        -- Only the lease of the process itself: a leadership lease does not show that its holder is alive.
        and not exists (select from leases where leases.name = holder.replica_id)
    ),
    before as materialized (
      -- Search one replica after another, to use the index. One search for all would scan every session.
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
    )
    select
      before.node_id, before.epoch, before.replica_id as previous_replica_id, now()::timestamptz(3) as now,
      before.marked,
      before.connection, before.connection_since, before.connection_reason,
      before.connection_message, before.connection_actor,
      before.health, before.health_since, before.health_reason,
      before.health_message, before.health_actor,
      nodes.membership, nodes.membership_since, nodes.membership_reason,
      nodes.membership_message, nodes.membership_actor
    from before
    join nodes on nodes.id = before.node_id
    order by before.node_id`.execute(tx);
  return rows;
}

const TAKEN_COLUMNS = sql`
  "nodeId" text, epoch integer,
  connection text, connection_since timestamptz, connection_reason text,
  connection_message text, connection_actor text`;

/** Write the new owner of sessions. The caller has locked the sessions' rows. */
async function take(tx: Tx, replicaId: string, nodes: readonly AdoptedNode[]): Promise<void> {
  if (nodes.length === 0) return;
  const items = nodes.map(({ nodeId, epoch, connection, connectionBefore }) => ({
    ...{ nodeId, epoch },
    // Leave out an unchanged connection, so that its columns are not written.
    ...(connection.state === connectionBefore ? {} : toColumns(connection)),
  }));
  await sql`${PREPARED}
    update node_sessions as s
    set
      replica_id = ${replicaId},
      epoch = i.epoch,
      connection = coalesce(i.connection, s.connection),
      connection_since = coalesce(i.connection_since, s.connection_since),
      connection_reason = coalesce(i.connection_reason, s.connection_reason),
      connection_message = coalesce(i.connection_message, s.connection_message),
      connection_actor = coalesce(i.connection_actor, s.connection_actor)
    from ${rowsFrom(items, TAKEN_COLUMNS)} as i
    where s.node_id = i."nodeId"`.execute(tx);
}

function toColumns({ state, sinceMs, reason, message, actor }: Connection) {
  return {
    connection: state,
    connection_since: new Date(sinceMs),
    connection_reason: reason,
    connection_message: message,
    connection_actor: actor,
  };
}
