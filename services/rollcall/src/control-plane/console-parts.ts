import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { UsageError } from "@rollcall/cli";
import { type ConsoleProcess, type PageFiles, readPageFiles, type UpstreamOptions } from "@rollcall/console";
import { isSafeUrl, oidcIssuersOf } from "@rollcall/identity/oidc";
import type { PeerTls } from "@rollcall/rpc";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import type { ProcessPlan } from "./process-plan.ts";

/**
 * Where the pages may be: next to the bundle, or in a checkout with built pages. The first folder that exists
 * is used.
 */
const FOLDERS = ["../console", "../../../console/web/dist"];

/** Read the console's pages for a process that serves them; null when they were not built. */
export async function readConsolePages({ services }: ProcessPlan): Promise<PageFiles | null> {
  if (!services.includes("console")) return null;
  const folders = FOLDERS.map((folder) => fileURLToPath(new URL(folder, import.meta.url)));
  const folder = folders.find((it) => existsSync(it));
  return folder === undefined ? null : readPageFiles(folder);
}

export function consoleSettings(
  plan: ProcessPlan,
  config: ControlPlaneConfig,
  peerTls: PeerTls | null,
): Pick<ConsoleProcess, "issuers" | "settings" | "upstream"> {
  return {
    issuers: oidcIssuersOf(config),
    settings: {
      idleMs: config["Console.SessionIdle"],
      longestMs: config["Console.SessionLongest"],
      isNetworkTrusted: config["Listen.InsecurePlaintext"],
    },
    upstream: plan.name === "up" ? null : upstreamOf(config, peerTls),
  };
}

/**
 * The key of each address, with the package of the services that it is for, or with the name of a service that
 * is served separately. See UpstreamOptions.
 */
const UPSTREAM_KEYS = [
  ["*", "Console.Upstream"],
  ["registry", "Console.RegistryUpstream"],
  ["events", "Console.RegistryUpstream"],
  ["WebhookService", "Console.AdminUpstream"],
  ["health", "Console.HealthUpstream"],
  ["admin", "Console.AdminUpstream"],
  ["scheduler", "Console.SchedulerUpstream"],
] as const;

/** Whether a separate console is configured with the address of any service. */
export function hasUpstream(config: ControlPlaneConfig): boolean {
  return UPSTREAM_KEYS.some(([, key]) => config[key] !== undefined);
}

/**
 * Throws UsageError when calls would be forwarded in clear text over a network, unless the configuration
 * allows it.
 */
export function refusePlaintextUpstreams(config: ControlPlaneConfig): void {
  if (config["Listen.InsecurePlaintext"]) return;
  for (const [, key] of UPSTREAM_KEYS) {
    const url = config[key];
    if (url === undefined || isSafeUrl(new URL(url))) continue;
    throw new UsageError(
      `${key} is ${url}: others could read and use access tokens. Use an https:// address, or set ` +
        "--insecure-plaintext if the network encrypts all traffic",
    );
  }
}

function upstreamOf(config: ControlPlaneConfig, peerTls: PeerTls | null): UpstreamOptions | null {
  return hasUpstream(config) ? { urls: upstreamUrls(config), tls: peerTls } : null;
}

/** The services' configured addresses, in the form of UpstreamOptions.urls. */
export function upstreamUrls(config: Partial<ControlPlaneConfig>): UpstreamOptions["urls"] {
  const named = UPSTREAM_KEYS.map(([area, key]) => [area, config[key]] as const);
  return Object.fromEntries(named.filter((pair): pair is [(typeof pair)[0], string] => pair[1] !== undefined));
}
