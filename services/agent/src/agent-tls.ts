import type { ServerAddress } from "@rollcall/config";
import { type ClientTls, parseFingerprint, readClientTls } from "@rollcall/identity";
import type { AuthorityStore } from "./network/authority-store.ts";

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
 * Reads the TLS files. Called for each connection, so that replaced files take effect. Throws TlsFileError, and
 * AuthorityError if the authority has not been fetched yet.
 */
export type AgentTls = () => ClientTls;

/**
 * The TLS settings for the registry and the health replicas; null for clear text. If the configuration gives the
 * authority's fingerprint, the agent trusts only the authorities in the AuthorityStore.
 */
export function agentTls(config: AgentTlsConfig, kept: AuthorityStore | null = null): AgentTls | null {
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

/** Whether to use TLS. The scheme of the server's address decides; without a scheme, any TLS setting turns it on. */
function speaksTls(config: AgentTlsConfig): boolean {
  const { scheme } = config["Compute.Server"];
  if (scheme !== undefined) return scheme === "https";
  return config["Compute.TLS.RequireTLS"] || TLS_PATHS.some((path) => isSet(config[path]));
}

/**
 * The TLS settings of the agent that `up` starts. `up` decides how its own agent connects: the configuration file may
 * be meant for agents on other machines and require TLS or name an authority, while this `up` uses clear text on its
 * own machine.
 */
export function withTlsOfUp<T extends AgentTlsConfig>(values: T): T {
  if (values["Compute.Server"].scheme === "https") {
    // Drop the fingerprint if CAFile is set: both are set only if `up` has set CAFile to its own authority.
    return isSet(values["Compute.TLS.CAFile"]) ? { ...values, [CA_FINGERPRINT]: undefined } : values;
  }
  const unset = Object.fromEntries(TLS_PATHS.map((path) => [path, undefined]));
  return { ...values, ...unset, "Compute.TLS.RequireTLS": false };
}

/** Check that the TLS settings are consistent. */
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
      message: "Compute.TLS.CertFile and Compute.TLS.KeyFile must be set together",
    })),
    ...(isTwice ? [{ path: CA_FINGERPRINT, message: "cannot be combined with Compute.TLS.CAFile" }] : []),
    ...(isUnreadable ? [{ path: CA_FINGERPRINT, message: "should be sha256: followed by 64 hexadecimal digits" }] : []),
    ...(isRefused ? [{ path: "Compute.Server" as const, message: NOT_ENCRYPTED }] : []),
    ...idle.map((path) => ({
      path,
      message: "has no effect because Compute.Server says http://; write https://",
    })),
  ];
}

const NOT_ENCRYPTED = "http:// is not encrypted, but Compute.TLS.RequireTLS is set; write https://";
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
