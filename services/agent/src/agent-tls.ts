import type { ServerAddress } from "@rollcall/config";
import { type ClientTls, readClientTls } from "@rollcall/identity";

/** What an agent's configuration says about TLS. */
export interface AgentTlsConfig {
  readonly "Compute.Server": ServerAddress;
  readonly "Compute.TLS.CAFile": string | undefined;
  readonly "Compute.TLS.CertFile": string | undefined;
  readonly "Compute.TLS.KeyFile": string | undefined;
  readonly "Compute.TLS.ServerName": string | undefined;
}

/** Reads what connections over TLS need, again for each, so that replaced files count. Throws TlsFileError. */
export type AgentTls = () => ClientTls;

/**
 * Whether the agent speaks TLS to the registry and to the health replicas alike, and with which files; null for clear
 * text.
 */
export function agentTls(config: AgentTlsConfig): AgentTls | null {
  if (!speaksTls(config)) return null;
  const files = {
    caFile: config["Compute.TLS.CAFile"],
    certFile: config["Compute.TLS.CertFile"],
    keyFile: config["Compute.TLS.KeyFile"],
    serverName: config["Compute.TLS.ServerName"],
  };
  return () => readClientTls(files);
}

/** By the address; without a scheme in it, by whether anything is said about TLS. */
function speaksTls(config: AgentTlsConfig): boolean {
  const { scheme } = config["Compute.Server"];
  return scheme === undefined ? TLS_PATHS.some((path) => isSet(config[path])) : scheme === "https";
}

/** What is wrong with the settings of TLS together. */
export function checkAgentTls(config: AgentTlsConfig) {
  const pair = ["Compute.TLS.CertFile", "Compute.TLS.KeyFile"] as const;
  const missing = pair.filter((path) => !isSet(config[path]));
  const half = missing.length === 1 ? missing : [];
  const said = TLS_PATHS.filter((path) => isSet(config[path]));
  const idle = config["Compute.Server"].scheme === "http" ? said : [];
  return [
    ...half.map((path) => ({
      path,
      message: "Compute.TLS.CertFile and Compute.TLS.KeyFile go together",
    })),
    ...idle.map((path) => ({
      path,
      message: "has no use, since Compute.Server says http://: write https://",
    })),
  ];
}

const TLS_PATHS = [
  "Compute.TLS.CAFile",
  "Compute.TLS.CertFile",
  "Compute.TLS.KeyFile",
  "Compute.TLS.ServerName",
] as const satisfies readonly (keyof AgentTlsConfig)[];

function isSet(value: string | undefined): boolean {
  return value !== undefined;
}
