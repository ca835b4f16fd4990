import {
  type ChangePosition,
  changePosition,
  type ReservedStore,
  readChangedNodeWork,
  readForgettable,
  readNodeWork,
  readSpecs,
  saveObservations,
} from "@rollcall/store";
import type { WorkRecord } from "./work-record.ts";

/** The record of work, on Postgres. */
export function createPostgresWork(store: ReservedStore): WorkRecord {
  let position: ChangePosition | null = null;
  return {
    logId: () => store.logId(),
    readNodes: (queries) => readNodeWork(store.db, queries),
    changedNodes: async () => {
      // Sessions that were opened before read their whole lists after this.
      position ??= await changePosition(store.db);
      const changes = await readChangedNodeWork(store.db, position);
      position = changes.position;
      return changes.items;
    },
    readSpecs: (digests) => readSpecs(store.db, digests),
    saveReports: (reports) => saveObservations(store, reports),
    forgettable: (nodeId, ids) => readForgettable(store.db, nodeId, ids),
  };
}
