import {
  adoptOrphans,
  collectedAmong,
  currentRevision,
  type EventFeed,
  heldBy,
  keyOf,
  labelSetsOf,
  openSessions,
  type ReservedStore,
  writeTransitions,
} from "@rollcall/store";
import type { HealthStore } from "../replica/health-store.ts";

const CATCH_UP_WITHIN_MS = 5_000;

/** The store of a replica, on Postgres. */
export function createPostgresRecord(options: {
  readonly store: ReservedStore;
  readonly feed: Pick<EventFeed, "caughtUpTo">;
  readonly instance: string;
}): HealthStore {
  const { store, feed, instance } = options;
  return {
    clusterId: () => store.clusterId(),
    currentRevision: () => currentRevision(store.db),
    caughtUpTo: (revision) => feed.caughtUpTo(revision, AbortSignal.timeout(CATCH_UP_WITHIN_MS)),
    keysOf: (nodeIds) => keyOf(store.db, nodeIds),
    labelsOf: (nodeIds) => labelSetsOf(store.db, nodeIds),
    collectedAmong: (nodeIds) => collectedAmong(store.db, nodeIds),
    openSessions: async (hellos) => {
      const sessions = hellos.map((hello) => ({ replicaId: instance, ...hello }));
      const { result, revision } = await store.change((tx) => openSessions(tx, sessions));
      // Use the revision of the read if the change wrote no event. In that case, no other replica had the session
      // before, so no displacement event is older than the read.
      return result.map((opening) => ({ openedRevision: revision === 0n ? opening.revision : revision, ...opening }));
    },
    writeTransitions: (transitions) => writeTransitions(store, instance, transitions),
    adoptOrphans: (limit) => adoptOrphans(store, instance, limit),
    held: (nodeIds) => heldBy(store.db, instance, nodeIds),
  };
}
