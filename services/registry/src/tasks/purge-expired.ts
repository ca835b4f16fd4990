import { periodicTask, type Task } from "@rollcall/runtime";
import { pruneChallenges, pruneRequestIds, pruneTombstones } from "@rollcall/store";
import type { RegistryDeps } from "../deps.ts";

const DAY_MS = 24 * 60 * 60_000;
const EVERY_MS = 10 * 60_000;
// A nonce is judged by the registries' clocks and its use dated by the database's: they may differ by most of this.
const CHALLENGES_KEPT_MS = DAY_MS;
const REQUEST_IDS_KEPT_MS = DAY_MS;
const TOMBSTONES_KEPT_MS = 30 * DAY_MS;

/** Forget what has served its time: used nonces and request ids after a day, tombstones after 30 days. */
export function purgeExpired({
  store,
  clock,
  log,
}: Pick<RegistryDeps, "store" | "clock" | "log">): Task {
  return periodicTask({
    name: "purge-expired",
    everyMs: EVERY_MS,
    clock,
    turn: async () => {
      const challenges = await pruneChallenges(store.db, CHALLENGES_KEPT_MS);
      const requestIds = await pruneRequestIds(store.db, REQUEST_IDS_KEPT_MS);
      const tombstones = await pruneTombstones(store.db, TOMBSTONES_KEPT_MS);
      log.debug({ challenges, request_ids: requestIds, tombstones }, "purged what has expired");
    },
  });
}
