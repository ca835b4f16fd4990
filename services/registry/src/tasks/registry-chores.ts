import {
  compactEvents,
  pruneAccessTokens,
  pruneChallenges,
  pruneJoinTokens,
  pruneRequestIds,
  pruneTombstones,
} from "@rollcall/store";
import type { RegistryProcess } from "../registry-process.ts";
import { collectNodes } from "./collect-nodes.ts";
import type { Chore } from "./upkeep.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
// How long used nonces are kept. Registries check a nonce's age by their own clocks, and the database's clock
// dates its use. The clocks can differ by most of this time.
const CHALLENGES_KEPT_MS = DAY_MS;
const REQUEST_IDS_KEPT_MS = DAY_MS;
const TOMBSTONES_KEPT_MS = 30 * DAY_MS;
const ENDED_TOKENS_KEPT_MS = 30 * DAY_MS;
const EVERY_TEN_MINUTES = "*/10 * * * *";

/**
 * The chores of a registry: delete expired events, tombstones, ended tokens, request ids and used nonces, each
 * oldest first, and remove nodes that are gone.
 */
export function registryChores(
  services: Pick<RegistryProcess, "store" | "clock" | "log" | "config">,
): readonly Chore[] {
  const { config } = services;
  const store = services.store.reserved;
  const { db } = store;
  const often = { schedule: EVERY_TEN_MINUTES, overdueAfterMs: 10 * MINUTE_MS };
  const hourly = { schedule: "7 * * * *", overdueAfterMs: 60 * MINUTE_MS };
  return [
    {
      name: "compact-events",
      ...often,
      run: (signal) => compactEvents(store, config["Events.Retention"], { signal }),
    },
    { name: "prune-tombstones", ...hourly, run: () => pruneTombstones(db, TOMBSTONES_KEPT_MS) },
    {
      name: "prune-join-tokens",
      ...hourly,
      run: () => pruneJoinTokens(db, ENDED_TOKENS_KEPT_MS),
    },
    {
      name: "prune-access-tokens",
      ...hourly,
      run: () => pruneAccessTokens(db, ENDED_TOKENS_KEPT_MS),
    },
    { name: "prune-request-ids", ...often, run: () => pruneRequestIds(db, REQUEST_IDS_KEPT_MS) },
    { name: "prune-challenges", ...often, run: () => pruneChallenges(db, CHALLENGES_KEPT_MS) },
    collectNodes(services),
  ];
}
