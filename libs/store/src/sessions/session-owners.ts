import { type SqlBool, sql } from "kysely";
import type { Db } from "../database/store.ts";

/** The replica that holds a node's session. */
export interface SessionOwner {
  readonly nodeId: string;
  /** The replica's instance id. The replica may have ended by now. */
  readonly replicaId: string;
  /**
   * Whether the store adds something to the replica's health decision: an operator's mark, or a problem of the
   * machine.
   */
  readonly marked: boolean;
}

/** Find the owners of these compute nodes, in order of id. Nodes without an owner are left out. */
export async function ownersOf(db: Db, ids: readonly string[]): Promise<readonly SessionOwner[]> {
  if (ids.length === 0) return [];
  return toOwners(await liveSessions(db).where(sql<SqlBool>`node_id = any(${ids}::text[])`).execute());
}

/** Find the owners of at most `limit` compute nodes after this id, in order of id. */
export async function ownersAfter(db: Db, afterId: string, limit: number): Promise<readonly SessionOwner[]> {
  return toOwners(await liveSessions(db).where("node_id", ">", afterId).limit(limit).execute());
}

/** Read the reported processor cores of each node whose session this replica holds, keyed by node id. */
export async function coresOfHeld(db: Db, replicaId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom("node_sessions as s")
    .innerJoin("nodes as n", "n.id", "s.node_id")
    .select(["n.id", "n.cores"])
    .where("s.replica_id", "=", replicaId)
    .where("s.node_type", "=", "COMPUTE")
    .execute();
  return new Map(rows.map(({ id, cores }) => [id, cores]));
}

const SAYS_MORE = sql<boolean>`(
  marked or duplicated_since is not null or rebooted_at is not null
  or gpu_troubles <> '[]' or node_id in (select id from nodes where missing_hardware <> '[]')
)`;

function liveSessions(db: Db) {
  return db
    .selectFrom("node_sessions")
    .select(["node_id", "replica_id", SAYS_MORE.as("marked")])
    .where("node_type", "=", "COMPUTE")
    .where("replica_id", "is not", null)
    .orderBy("node_id");
}

function toOwners(
  rows: readonly {
    readonly node_id: string;
    readonly replica_id: string | null;
    readonly marked: boolean;
  }[],
): readonly SessionOwner[] {
  return rows.flatMap(({ node_id: nodeId, replica_id: replicaId, marked }) =>
    replicaId === null ? [] : [{ nodeId, replicaId, marked }],
  );
}
