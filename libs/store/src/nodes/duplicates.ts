import { identityClearedEvent, isDuplicateOver } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, LaneStore } from "../database/store.ts";

/**
 * Clear the nodes of a replica that one machine has had to itself for long enough since two used them in turns, each
 * with its event. Answers their ids. Costs one look at an index while there are none.
 */
export async function clearDuplicates(store: LaneStore, replicaId: string): Promise<readonly string[]> {
  if ((await selectDuplicated(store.db, replicaId).limit(1).execute()).length === 0) return [];
  const { result } = await store.change(async (tx) => {
    const rows = await selectDuplicated(tx, replicaId).orderBy("node_id").forNoKeyUpdate().execute();
    const over = rows.filter(({ machines, now }) => isDuplicateOver(machines, now.getTime()));
    const ids = over.map(({ node_id }) => node_id);
    if (ids.length === 0) return { result: ids, events: [] };
    await tx.updateTable("node_sessions").set({ duplicated_since: null }).where("node_id", "in", ids).execute();
    const actor = `replica:${replicaId}`;
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
