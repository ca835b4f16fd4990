import { type CollectionReason, collected, type NewEvent, type NodeRecord } from "@rollcall/domain";
import { type SqlBool, sql } from "kysely";
import { type Db, type LaneStore, recordTimeMs } from "../database/store.ts";
import { lockWithSessions } from "./nodes.ts";
import { removeNode } from "./save-node.ts";

/** Which nodes may be gone. */
export interface GoneNodes {
  /** How long an ephemeral node has been DISCONNECTED at least, in milliseconds of the database's clock. */
  readonly ephemeralForMs: number;
  /** The same for others; null: none of them. */
  readonly othersForMs: number | null;
  /** Only those whose id comes after this one. */
  readonly after: string;
  readonly limit: number;
}

/**
 * Ids of compute nodes that have had no stream for long, in order. Rejected ones are not among them: their rows are
 * what keeps them out. The caller looks again under the lock of the row before it removes one, because it may be back:
 * see removeGoneNodes().
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

/** Whether a health replica that lives, as far as leases tell, can take nodes in. */
export async function isHealthServed(db: Db): Promise<boolean> {
  const { rows } = await sql<{ served: boolean }>`
    select exists (
      select from health_replicas as h join leases as l on l.instance = h.instance
    ) as served`.execute(db);
  return rows[0]?.served ?? false;
}

/**
 * Remove those of some nodes that are gone for good, each with a tombstone and an event; their ids. What is decided on
 * cannot change meanwhile: the rows of each node and of its session are locked.
 *
 * @param decide why a node goes, or null when it stays; the time is the database's, in milliseconds since 1970.
 */
export async function removeGoneNodes(
  store: LaneStore,
  ids: readonly string[],
  decide: (node: NodeRecord, nowMs: number) => CollectionReason | null,
): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  const { result } = await store.change(async (tx) => {
    const events: NewEvent[] = [];
    // A session that opens waits here and then finds no node; one that was opened is seen.
    const nodes = await lockWithSessions(tx, ids);
    const nowMs = await recordTimeMs(tx);
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
