import { ADMIN_KEYS } from "@rollcall/admin";
import { agentKeys } from "@rollcall/agent";
import type { ConfigValues, KeyDeclaration } from "@rollcall/config";
import { CONSOLE_KEYS } from "@rollcall/console";
import { EVENTS_KEYS } from "@rollcall/events/config";
import { HEALTH_KEYS } from "@rollcall/health";
import { OIDC_KEYS } from "@rollcall/identity/oidc";
import { REGISTRY_KEYS } from "@rollcall/registry";
import { PROCESS_KEYS } from "./process-keys.ts";

/**
 * Merge the declarations of a key that both the control plane and agents read from one file, for example because the
 * control plane's policy is the agent's preference. Keeps the documentation of `key`, and accepts the aliases of both.
 */
function withBothAliases<T>(key: KeyDeclaration<T>, other: KeyDeclaration<unknown>): KeyDeclaration<T> {
  return { ...key, aliases: [...new Set([...(key.aliases ?? []), ...(other.aliases ?? [])])] };
}

/** All keys of the control plane and of agents, in display order. */
export const ALL_KEYS = {
  ...PROCESS_KEYS,
  ...REGISTRY_KEYS,
  ...HEALTH_KEYS,
  ...ADMIN_KEYS,
  ...OIDC_KEYS,
  ...EVENTS_KEYS,
  ...CONSOLE_KEYS,
  ...agentKeys,
  "Compute.Heartbeat.Interval": withBothAliases(
    HEALTH_KEYS["Compute.Heartbeat.Interval"],
    agentKeys["Compute.Heartbeat.Interval"],
  ),
  "Compute.Heartbeat.InfoUpdateInterval": withBothAliases(
    HEALTH_KEYS["Compute.Heartbeat.InfoUpdateInterval"],
    agentKeys["Compute.Heartbeat.InfoUpdateInterval"],
  ),
};

export type AllValues = ConfigValues<typeof ALL_KEYS>;
