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
 * Agents and control plane may read the same file, and share keys: what is a policy here is a wish there. The control
 * plane's meaning is shown; whatever name either side takes for a key is taken.
 */
function withBothAliases<T>(key: KeyDeclaration<T>, other: KeyDeclaration<unknown>): KeyDeclaration<T> {
  return { ...key, aliases: [...new Set([...(key.aliases ?? []), ...(other.aliases ?? [])])] };
}

/** Every key of the control plane and of agents, in the order in which they are shown. */
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

/** Their values. */
export type AllValues = ConfigValues<typeof ALL_KEYS>;
