import {
  identityClearedEvent,
  isDuplicateOver,
  type NewEvent,
  type NodeRecord,
  type OwnersView,
  planConditions,
  replicaActor,
  type Trouble,
} from "@rollcall/domain";
import { sql } from "kysely";
import { type Db, type LaneStore, recordTimeMs } from "../database/store.ts";
import { getNodes, lockWithSessions } from "./nodes.ts";
import { saveNodeEffects } from "./save-node.ts";

/** A node that is to be looked after. */
export interface TroubledNode {
  readonly nodeId: string;
  readonly gpuTroubles: readonly Trouble[];
}

/**
 * The nodes of a replica that flap, have or may have rebooted recently, have something wrong with their hardware, are
 * used by two agents, or are held for one of these; in order of id, at most `limit` after `after`. Costs two looks at
 * small indexes while there are none.
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

/** What is recorded of the GPUs of these nodes. */
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
 * Bring the record up to what planConditions() says of it and of what the owner knows. Nothing is locked while there is
 * nothing to change. Returns the ids of the nodes that changed.
 */
export async function settleConditions(
  store: LaneStore,
  replicaId: string,
  views: readonly OwnersView[],
): Promise<readonly string[]> {
  const byNode = new Map(views.map((view) => [view.nodeId, view]));
  const plan = (node: NodeRecord, nowMs: number) => planConditions(node, byNode.get(node.id), { replicaId, nowMs });
  const nowMs = await recordTimeMs(store.db);
  const looked = await getNodes(store.db, [...byNode.keys()]);
  const due = looked.filter((node) => plan(node, nowMs) !== null).map(({ id }) => id);
  if (due.length === 0) return [];
  const { result } = await store.change(async (tx) => {
    const locked = await lockWithSessions(tx, due);
    const lockedAtMs = await recordTimeMs(tx);
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
 * Clear the nodes of a replica that one agent has had to itself for long enough since two used them in turns, each with
 * its event. Returns their ids. Costs one look at an index while there are none.
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
