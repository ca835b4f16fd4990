import { ADMIN_KEYS, type AdminConfig } from "@rollcall/admin";
import type { Config } from "@rollcall/config";
import { CONSOLE_KEYS, type ConsoleConfig, checkConsoleConfig } from "@rollcall/console";
import { checkEventsConfig, EVENTS_KEYS, type EventsConfig } from "@rollcall/events/config";
import { checkHealthConfig, HEALTH_KEYS, type HealthConfig } from "@rollcall/health";
import { checkOidcConfig, OIDC_KEYS, type OidcConfig } from "@rollcall/identity/oidc";
import { checkJoinConfig, REGISTRY_KEYS, type RegistryConfig } from "@rollcall/registry";
import { ALL_KEYS } from "./all-keys.ts";
import { checkTlsConfig } from "./check-tls-config.ts";
import { type ConfigurationSources, loadConfiguration } from "./load.ts";
import { PROCESS_KEYS, type ProcessConfig } from "./process-keys.ts";

/** The keys of any process of the control plane. */
export const CONTROL_PLANE_KEYS = {
  ...PROCESS_KEYS,
  ...REGISTRY_KEYS,
  ...ADMIN_KEYS,
  ...OIDC_KEYS,
  ...HEALTH_KEYS,
  ...EVENTS_KEYS,
  ...CONSOLE_KEYS,
  "Compute.Heartbeat.Interval": ALL_KEYS["Compute.Heartbeat.Interval"],
  "Compute.Heartbeat.InfoUpdateInterval": ALL_KEYS["Compute.Heartbeat.InfoUpdateInterval"],
};

/** The values of CONTROL_PLANE_KEYS. */
export type ControlPlaneConfig = ProcessConfig &
  RegistryConfig &
  HealthConfig &
  AdminConfig &
  OidcConfig &
  EventsConfig &
  ConsoleConfig;

/** Load the configuration of a process of the control plane. Throws a UsageError that lists every problem. */
export function loadControlPlaneConfig(sources: ConfigurationSources): Promise<Config<ControlPlaneConfig>> {
  return loadConfiguration<ControlPlaneConfig>(
    { keys: CONTROL_PLANE_KEYS, alsoKnown: ALL_KEYS, check: checkControlPlaneConfig },
    sources,
  );
}

/** Contradictions between the store's settings. */
function checkDatabaseConfig(values: ProcessConfig) {
  if (values["Database.DirectURL"] === undefined || values["Database.URL"] !== undefined) return [];
  const path = "Database.DirectURL" as const;
  return [{ path, message: "has no effect without Database.URL, the address of the pooler" }];
}

/** Contradictions between values that are individually valid. */
export function checkControlPlaneConfig(values: ControlPlaneConfig) {
  return [
    ...checkDatabaseConfig(values),
    ...checkTlsConfig(values),
    ...checkJoinConfig(values),
    ...checkHealthConfig(values),
    ...checkEventsConfig(values),
    ...checkOidcConfig(values),
    ...checkConsoleConfig(values),
  ];
}
