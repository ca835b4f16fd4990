import type { ServerAddress } from "@rollcall/config";
import { type ClientTls, parseFingerprint, readClientTls } from "@rollcall/identity";
import type { KeptAuthorities } from "./network/kept-authorities.ts";

/** What an agent's configuration says about TLS. */
export interface AgentTlsConfig {
  readonly "Compute.Server": ServerAddress;
  readonly "Compute.TLS.CAFile": string | undefined;
  readonly "Compute.TLS.CAFingerprint": string | undefined;
  readonly "Compute.TLS.CertFile": string | undefined;
  readonly "Compute.TLS.KeyFile": string | undefined;
  readonly "Compute.TLS.ServerName": string | undefined;
  readonly "Compute.TLS.RequireTLS": boolean;
}

/**
 * Reads what connections over TLS need, again for each, so that replaced files count. Throws TlsFileError, and
 * AuthorityError where the authority was not fetched yet.
 */
export type AgentTls = () => ClientTls;

/**
 * Whether the agent speaks TLS to the registry and to the health replicas alike, and with which files; null for clear
 * text. Where an authority was given by its fingerprint, nothing is trusted but what is kept because of it.
 */
export function agentTls(config: AgentTlsConfig, kept: KeptAuthorities | null = null): AgentTls | null {
  if (!speaksTls(config)) return null;
  const files = {
    caFile: config["Compute.TLS.CAFile"],
    certFile: config["Compute.TLS.CertFile"],
    keyFile: config["Compute.TLS.KeyFile"],
    serverName: config["Compute.TLS.ServerName"],
  };
  if (kept === null) return () => readClientTls(files);
  return () => ({ ...readClientTls(files), ca: kept.read() });
}

/** By the address; without a scheme in it, by whether any setting is about TLS. */
function speaksTls(config: AgentTlsConfig): boolean {
  const { scheme } = config["Compute.Server"];
  if (scheme !== undefined) return scheme === "https";
  return config["Compute.TLS.RequireTLS"] || TLS_PATHS.some((path) => isSet(config[path]));
}

/**
 * The settings of an agent that `up` starts. `up` decides how its own agent connects: a file for agents elsewhere may
 * require TLS or name an authority, where this `up` speaks clear text to itself on its own machine.
 */
export function withTlsOfUp<T extends AgentTlsConfig>(values: T): T {
  if (values["Compute.Server"].scheme === "https") {
    // Both are set only where `up` names the file of its own authority.
    return isSet(values["Compute.TLS.CAFile"]) ? { ...values, [CA_FINGERPRINT]: undefined } : values;
  }
  const unset = Object.fromEntries(TLS_PATHS.map((path) => [path, undefined]));
  return { ...values, ...unset, "Compute.TLS.RequireTLS": false };
}

/** What is wrong with the settings of TLS together. */
export function checkAgentTls(config: AgentTlsConfig) {
  const pair = ["Compute.TLS.CertFile", "Compute.TLS.KeyFile"] as const;
  const missing = pair.filter((path) => !isSet(config[path]));
  const half = missing.length === 1 ? missing : [];
  const [caFile, fingerprint] = [config["Compute.TLS.CAFile"], config["Compute.TLS.CAFingerprint"]];
  const isTwice = isSet(caFile) && isSet(fingerprint);
  const isUnreadable = fingerprint !== undefined && parseFingerprint(fingerprint) === null;
  const said = TLS_PATHS.filter((path) => isSet(config[path]));
  const isPlain = config["Compute.Server"].scheme === "http";
  const idle = isPlain ? said : [];
  const isRefused = isPlain && config["Compute.TLS.RequireTLS"];
  return [
    ...half.map((path) => ({
      path,
      message: "Compute.TLS.CertFile and Compute.TLS.KeyFile go together",
    })),
    ...(isTwice ? [{ path: CA_FINGERPRINT, message: "Compute.TLS.CAFile names the authority already" }] : []),
    ...(isUnreadable ? [{ path: CA_FINGERPRINT, message: "should be sha256: and 64 hexadecimal digits" }] : []),
    ...(isRefused ? [{ path: "Compute.Server" as const, message: NOT_ENCRYPTED }] : []),
    ...idle.map((path) => ({
      path,
      message: "has no use, since Compute.Server says http://: write https://",
    })),
  ];
}

const NOT_ENCRYPTED = "http:// is not encrypted, and Compute.TLS.RequireTLS is set: write https://";
const CA_FINGERPRINT = "Compute.TLS.CAFingerprint" as const;

const TLS_PATHS = [
  "Compute.TLS.CAFile",
  CA_FINGERPRINT,
  "Compute.TLS.CertFile",
  "Compute.TLS.KeyFile",
  "Compute.TLS.ServerName",
] as const satisfies readonly (keyof AgentTlsConfig)[];

function isSet(value: string | undefined): boolean {
  return value !== undefined;
}
