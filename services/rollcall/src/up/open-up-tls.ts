import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import type { RunFile } from "@rollcall/cli";
import type { TlsSource } from "@rollcall/identity";
import { type Logger, systemClock, type Task } from "@rollcall/process";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { configuredTlsFiles, openTls } from "../control-plane/open-tls.ts";
import { localAddress } from "../control-plane/process-plan.ts";
import { externalAddresses } from "./address-elsewhere.ts";
import {
  developmentNames,
  keepDevelopmentCertificates,
  renewDevelopmentCertificates,
} from "./development-certificates.ts";

/** How clients on this machine reach an `up` that uses TLS. */
export type LocalTrust = NonNullable<RunFile["tls"]>;

/** The TLS settings of an `up`. */
export interface UpTls {
  readonly source: TlsSource;
  readonly trust: LocalTrust;
  /** Tasks that renew the certificate; none if it is managed elsewhere. */
  readonly tasks: readonly Task[];
}

/** The folder for the certificates of `up --tls`, inside its data directory. */
const TLS_DIRECTORY = "tls";

/**
 * Open the certificate of `up`: the configured one or a development certificate; null for clear text. Throws Failure.
 */
export async function openUpTls(config: ControlPlaneConfig, dataDirectory: string, log: Logger): Promise<UpTls | null> {
  const deps = { clock: systemClock, log };
  const host = config["Listen.Host"];
  if (config["Up.TLS"]) {
    const names = developmentNames(host, hostname(), externalAddresses(networkInterfaces()));
    const options = { dir: join(dataDirectory, TLS_DIRECTORY), names, ...deps };
    const files = await keepDevelopmentCertificates(options);
    const source = await openTls({ ...files, clientCaFile: config["TLS.ClientCAFile"] }, deps);
    const trust = { caFile: files.caFile, serverName: null };
    return source && { source, trust, tasks: [renewDevelopmentCertificates(options)] };
  }
  const source = await openTls(configuredTlsFiles(config), deps);
  if (source === null) return null;
  const trust = {
    caFile: config["TLS.CAFile"] ?? null,
    serverName: nameFor(host, String(source.context.cert)),
  };
  return { source, trust, tasks: [] };
}

/**
 * The server name that clients on this machine must expect; null if the certificate has the address at which they reach
 * the server.
 */
function nameFor(host: string, certPem: string): string | null {
  const certificate = new X509Certificate(certPem);
  const reached = localAddress(host, 0)
    .replace(/:0$/, "")
    .replace(/^\[(.*)\]$/, "$1");
  const isFor = isIP(reached) === 0 ? certificate.checkHost(reached) : certificate.checkIP(reached);
  if (isFor !== undefined) return null;
  const [, name] = /DNS:([^,\s]+)/.exec(certificate.subjectAltName ?? "") ?? [];
  // Replace a wildcard by a name, because it matches any name in its domain.
  return name?.replace(/^\*/, "rollcall") ?? null;
}
