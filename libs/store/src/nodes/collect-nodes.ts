import { type CollectionReason, collected, type NewEvent, type Node } from "@rollcall/domain";
import { type SqlBool, sql } from "kysely";
import { type Db, type LaneStore, storeTimeMs } from "../database/store.ts";
import { lockWithSessions } from "./nodes.ts";
import { removeNode } from "./save-node.ts";

/** Which nodes count as permanently gone. */
export interface GoneNodes {
  /** How long an ephemeral node must have been DISCONNECTED, in milliseconds by the database's clock. */
  readonly ephemeralForMs: number;
  /** How long other nodes must have been DISCONNECTED; null excludes them. */
  readonly othersForMs: number | null;
  /** Only nodes with an id after this one. */
  readonly after: string;
  readonly limit: number;
}

/**
 * List the ids of compute nodes that have been DISCONNECTED for the given time, in order. Rejected nodes are
 * excluded, because their rows prevent them from joining again. A node may have reconnected by now, so check again
 * under the row's lock before you remove it: see removeGoneNodes().
 */
export async function findGoneNodes(db: Db, gone: GoneNodes): Promise<readonly string[]> {
  const { ephemeralForMs, othersForMs, after, limit } = gone;
  const isGoneFor = (ms: number) => sql<SqlBool>`s.connection_since <= now() - ${ms} * interval '1 millisecond'`;
  let query = db
    .selectFrom("nodes as n")
    .innerJoin("node_sessions as s", "s.node_id", "n.id")
    .select("n.id")
    .where("n.id", ">", after)
    .where("n.type", "=", "COMPUTE")
    .where("n.membership", "<>", "REJECTED")
    .where("s.connection", "=", "DISCONNECTED");
  query =
    othersForMs === null
      ? query.where("n.ephemeral", "=", true).where(isGoneFor(ephemeralForMs))
      : query.where(sql<SqlBool>`((n.ephemeral and ${isGoneFor(ephemeralForMs)}) or ${isGoneFor(othersForMs)})`);
  const rows = await query.orderBy("n.id").limit(limit).execute();
  return rows.map(({ id }) => id);
}

/** Whether a health replica that holds a lease can accept nodes. */
export async function isHealthServed(db: Db): Promise<boolean> {
  const { rows } = await sql<{ served: boolean }>`
    select exists (
      select from health_replicas as h join leases as l on l.instance = h.instance
    ) as served`.execute(db);
  return rows[0]?.served ?? false;
}

/**
 * Remove the nodes that are permanently gone from among the given nodes, each with a tombstone and an event. Returns
 * the ids of the removed nodes. The rows of the nodes and their sessions stay locked, so that the decision remains
 * valid.
 *
 * @param decide returns why to remove a node, or null to keep it. It gets the time of the database, in milliseconds
 *   since 1970.
 */
export async function removeGoneNodes(
  store: LaneStore,
  ids: readonly string[],
  decide: (node: Node, nowMs: number) => CollectionReason | null,
): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  const { result } = await store.change(async (tx) => {
    const events: NewEvent[] = [];
    // Lock the nodes and their sessions. A session that opens now waits for these locks, and then finds no node. A
    // session that opened before is visible here.
    const nodes = await lockWithSessions(tx, ids);
    const nowMs = await storeTimeMs(tx);
    for (const node of nodes) {
      const why = decide(node, nowMs);
      if (why === null) continue;
      const { removal, event } = collected(node, why);
      await removeNode(tx, node, removal);
      events.push(event);
    }
    return { result: events.map(({ subject }) => subject), events };
  });
  return result;
}
