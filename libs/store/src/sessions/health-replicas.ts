import { sql } from "kysely";
import { PREPARED } from "../database/pool.ts";
import type { Db } from "../database/store.ts";

/** The addresses of a health replica, each as `host:port`. */
export interface HealthReplica {
  readonly instance: string;
  /** The address for agents' streams. */
  readonly agentEndpoint: string;
  /** The address for other replicas. */
  readonly internalAddress: string;
  /** The address of HealthQueryService, for readers. */
  readonly queryEndpoint: string;
}

/** A health replica that holds a lease. */
export interface LiveReplica extends HealthReplica {
  /** Number of agents' sessions that the replica held at its last renewal; 0 before the first report. */
  readonly sessions: number;
}

/**
 * Store a replica's addresses, replacing its earlier ones. Returns the instances of other replicas that are stored
 * with the same internal address. Those replicas ran there before and no longer respond, although their leases may
 * not have expired yet.
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

/** List the replicas that hold a lease, sorted by instance. */
export async function listHealthReplicas(db: Db): Promise<readonly LiveReplica[]> {
  const rows = await db
    .selectFrom("health_replicas as r")
    .modifyFront(PREPARED)
    // Join only a process's own lease, which is named after its instance, unlike other leases that the process can
    // hold.
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

/** Delete the addresses of a replica that ends or whose lease has expired. */
export async function withdraw(db: Db, instance: string): Promise<void> {
  await db.deleteFrom("health_replicas").where("instance", "=", instance).execute();
}
