import {
  identityClearedEvent,
  isDuplicateOver,
  type NewEvent,
  type Node,
  type OwnersView,
  planConditions,
  replicaActor,
  type Trouble,
} from "@rollcall/domain";
import { sql } from "kysely";
import { type Db, type LaneStore, storeTimeMs } from "../database/store.ts";
import { getNodes, lockWithSessions } from "./nodes.ts";
import { saveNodeEffects } from "./save-node.ts";

/** A node whose conditions must be checked. */
export interface TroubledNode {
  readonly nodeId: string;
  readonly gpuTroubles: readonly Trouble[];
}

/**
 * List nodes of a replica whose conditions must be checked: nodes that flap, have or may have rebooted recently, have
 * hardware problems, are used by two agents, or have a hold for one of these reasons. Returns at most `limit` nodes
 * after `after`, in order of id. When there are none, it costs two scans of small indexes.
 */
export async function troubledNodes(
  db: Db,
  replicaId: string,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly TroubledNode[]> {
  const { rows } = await sql<TroubledNode>`
    select node_id as "nodeId", gpu_troubles as "gpuTroubles"
    from node_sessions
    where replica_id = ${replicaId} and node_id > ${after}
      and (
        flapping_since is not null or gpu_troubles <> '[]' or rebooted_at is not null
        or reboot_suspected is not null or duplicated_since is not null
      )
    union
    select s.node_id, s.gpu_troubles
    from nodes as n
    join node_sessions as s on s.node_id = n.id
    where s.replica_id = ${replicaId} and n.id > ${after}
      and (
        n.missing_hardware <> '[]' or n.holds @> '[{"kind": "FLAPPING"}]'
        or n.holds @> '[{"kind": "HARDWARE"}]' or n.holds @> '[{"kind": "IDENTITY"}]'
      )
    order by 1
    limit ${limit}`.execute(db);
  return rows;
}

/** Read the recorded GPU problems of these nodes. */
export async function recordedTroubles(db: Db, ids: readonly string[]): Promise<readonly TroubledNode[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom("node_sessions")
    .select(["node_id as nodeId", "gpu_troubles as gpuTroubles"])
    .where("node_id", "in", ids)
    .execute();
  return rows;
}

/**
 * Update the stored conditions of nodes. planConditions() decides about each node from its row and from what its owner
 * knows. When nothing changes, this locks nothing. Returns the ids of the changed nodes.
 */
export async function settleConditions(
  store: LaneStore,
  replicaId: string,
  views: readonly OwnersView[],
): Promise<readonly string[]> {
  const byNode = new Map(views.map((view) => [view.nodeId, view]));
  const plan = (node: Node, nowMs: number) => planConditions(node, byNode.get(node.id), { replicaId, nowMs });
  const nowMs = await storeTimeMs(store.db);
  const looked = await getNodes(store.db, [...byNode.keys()]);
  const due = looked.filter((node) => plan(node, nowMs) !== null).map(({ id }) => id);
  if (due.length === 0) return [];
  const { result } = await store.change(async (tx) => {
    const locked = await lockWithSessions(tx, due);
    const lockedAtMs = await storeTimeMs(tx);
    const events: NewEvent[] = [];
    const changed: string[] = [];
    for (const node of locked) {
      const planned = plan(node, lockedAtMs);
      if (planned === null) continue;
      await saveNodeEffects(tx, node, planned.effects);
      changed.push(node.id);
      events.push(...planned.events);
    }
    return { result: changed, events };
  });
  return result;
}

/**
 * End the duplicate state of a replica's nodes that two agents used alternately, once only one agent has used a node
 * for long enough. Writes an event for each node and returns the ids. When there are none, it costs one index scan.
 */
export async function clearDuplicates(store: LaneStore, replicaId: string): Promise<readonly string[]> {
  if ((await selectDuplicated(store.db, replicaId).limit(1).execute()).length === 0) return [];
  const { result } = await store.change(async (tx) => {
    const rows = await selectDuplicated(tx, replicaId).orderBy("node_id").forNoKeyUpdate().execute();
    const over = rows.filter(({ machines, now }) => isDuplicateOver(machines, now.getTime()));
    const ids = over.map(({ node_id }) => node_id);
    if (ids.length === 0) return { result: ids, events: [] };
    await tx.updateTable("node_sessions").set({ duplicated_since: null }).where("node_id", "in", ids).execute();
    const actor = replicaActor(replicaId);
    return { result: ids, events: ids.map((id) => identityClearedEvent(id, actor)) };
  });
  return result;
}

function selectDuplicated(db: Db, replicaId: string) {
  return db
    .selectFrom("node_sessions")
    .select(["node_id", "machines", sql<Date>`clock_timestamp()`.as("now")])
    .where("replica_id", "=", replicaId)
    .where("duplicated_since", "is not", null);
}
