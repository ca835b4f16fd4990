import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { join, resolve } from "node:path";
import type { RunFile, Shell } from "@rollcall/cli";
import type { TlsSource } from "@rollcall/identity";
import { type Logger, systemClock, type Task } from "@rollcall/process";
import type { ControlPlaneConfig } from "../config/control-plane-config.ts";
import { clientCaFile, configuredTlsFiles, openTls } from "../control-plane/open-tls.ts";
import { localAddress } from "../control-plane/process-plan.ts";
import { externalAddresses } from "./address-elsewhere.ts";
import {
  developmentNames,
  keepDevelopmentCertificates,
  renewDevelopmentCertificates,
} from "./development-certificates.ts";

/** How the clients of this machine reach an `up` that speaks TLS. */
export type LocalTrust = NonNullable<RunFile["tls"]>;

/** The TLS of an `up`. */
export interface UpTls {
  readonly source: TlsSource;
  readonly trust: LocalTrust;
  /** Keeps the certificate good; none for one that others keep. */
  readonly tasks: readonly Task[];
}

/** Where `up --tls` keeps its certificates, inside its data directory. */
const TLS_DIRECTORY = "tls";

/** Open the certificate of `up`: the configured one, or one of its own; null for clear text. Throws Failure. */
export async function openUpTls(
  config: ControlPlaneConfig,
  where: { readonly shell: Pick<Shell, "cwd">; readonly dataDirectory: string },
  log: Logger,
): Promise<UpTls | null> {
  const { shell, dataDirectory } = where;
  const deps = { clock: systemClock, log };
  const host = config["Listen.Host"];
  if (config["Up.TLS"]) {
    const names = developmentNames(host, hostname(), externalAddresses(networkInterfaces()));
    const options = { dir: join(dataDirectory, TLS_DIRECTORY), names, ...deps };
    const files = await keepDevelopmentCertificates(options);
    const source = await openTls({ ...files, clientCaFile: clientCaFile(config, shell) }, deps);
    const trust = { caFile: files.caFile, serverName: null };
    return source && { source, trust, tasks: [renewDevelopmentCertificates(options)] };
  }
  const source = await openTls(configuredTlsFiles(config, shell), deps);
  if (source === null) return null;
  const ca = config["TLS.CAFile"];
  const trust = {
    caFile: ca === undefined ? null : resolve(shell.cwd, ca),
    serverName: nameFor(host, String(source.context.cert)),
  };
  return { source, trust, tasks: [] };
}

/**
 * The name to expect where a certificate is not for the address by which this machine reaches itself; null when it is.
 */
function nameFor(host: string, certPem: string): string | null {
  const certificate = new X509Certificate(certPem);
  const reached = localAddress(host, 0)
    .replace(/:0$/, "")
    .replace(/^\[(.*)\]$/, "$1");
  const isFor = isIP(reached) === 0 ? certificate.checkHost(reached) : certificate.checkIP(reached);
  if (isFor !== undefined) return null;
  const [, name] = /DNS:([^,\s]+)/.exec(certificate.subjectAltName ?? "") ?? [];
  // A wildcard is for any name below it.
  return name?.replace(/^\*/, "rollcall") ?? null;
}
