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
import type { WorkStore } from "./work-store.ts";

/** The store of work, on Postgres. */
export function createPostgresWork(store: ReservedStore): WorkStore {
  let position: ChangePosition | null = null;
  return {
    logId: () => store.logId(),
    readNodes: (queries) => readNodeWork(store.db, queries),
    changedNodes: async () => {
      // The first call starts at the current position. No session misses
      // earlier changes, because lists are read only after this call.
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
