import { sql } from "kysely";
import { PREPARED } from "../database/pool.ts";
import type { Db } from "../database/store.ts";

/** Where a health replica can be reached, each as `host:port`. */
export interface HealthReplica {
  readonly instance: string;
  /** For agents' streams. */
  readonly agentEndpoint: string;
  /** For other replicas. */
  readonly internalAddress: string;
  /** For readers: HealthQueryService. */
  readonly queryEndpoint: string;
}

/** A replica that holds a lease. */
export interface LiveReplica extends HealthReplica {
  /** Agents' sessions that it held when it last renewed its lease; 0 before it has said so. */
  readonly sessions: number;
}

/**
 * Say where a replica can be reached, in place of what it said before. Another replica that the record has at the same
 * internal address ran there before, and cannot be asked any more, though its lease may not have run out yet: the
 * instances of those.
 */
export async function advertise(db: Db, replica: HealthReplica): Promise<readonly string[]> {
  const endpoints = {
    agent_endpoint: replica.agentEndpoint,
    internal_address: replica.internalAddress,
    query_endpoint: replica.queryEndpoint,
  };
  await db
    .insertInto("health_replicas")
    .values({ instance: replica.instance, ...endpoints })
    .onConflict((conflict) =>
      conflict.column("instance").doUpdateSet({ ...endpoints, advertised_at: sql<Date>`now()` }),
    )
    .execute();
  if (replica.internalAddress === "") return [];
  const before = await db
    .updateTable("health_replicas")
    .set({ internal_address: "" })
    .where("internal_address", "=", replica.internalAddress)
    .where("instance", "<>", replica.instance)
    .returning("instance")
    .execute();
  return before.map(({ instance }) => instance);
}

/** The replicas that hold a lease, by instance. */
export async function listHealthReplicas(db: Db): Promise<readonly LiveReplica[]> {
  const rows = await db
    .selectFrom("health_replicas as r")
    .modifyFront(PREPARED)
    // A process's own lease has its name; it may hold others besides.
    .innerJoin("leases as l", "l.name", "r.instance")
    .select(["r.instance", "r.agent_endpoint", "r.internal_address", "r.query_endpoint"])
    .select("l.sessions")
    .orderBy("r.instance")
    .execute();
  return rows.map((row) => ({
    instance: row.instance,
    agentEndpoint: row.agent_endpoint,
    internalAddress: row.internal_address,
    queryEndpoint: row.query_endpoint,
    sessions: row.sessions ?? 0,
  }));
}

/** Forget a replica, when it ends or its lease has run out. */
export async function withdraw(db: Db, instance: string): Promise<void> {
  await db.deleteFrom("health_replicas").where("instance", "=", instance).execute();
}
