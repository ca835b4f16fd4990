import { resolve } from "node:path";
import { Failure, type Shell } from "@rollcall/cli";
import { AuthorityFile, readClientTls, TlsFileError, type TlsFiles, TlsSource } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import type { PeerTls } from "@rollcall/rpc";
import type { ProcessConfig } from "../config/process-keys.ts";

/** The files of a configuration, found from the working directory; null without TLS. */
export function configuredTlsFiles(config: ProcessConfig, { cwd }: Pick<Shell, "cwd">) {
  const certFile = config["TLS.CertFile"];
  const keyFile = config["TLS.KeyFile"];
  if (certFile === undefined || keyFile === undefined) return null;
  return {
    certFile: resolve(cwd, certFile),
    keyFile: resolve(cwd, keyFile),
    clientCaFile: clientCaFile(config, { cwd }),
    caFile: trustedCaFile(config, { cwd }) ?? undefined,
  };
}

/** Where the authority of the configured certificate is; null for one that the system trusts. */
export function trustedCaFile(config: ProcessConfig, { cwd }: Pick<Shell, "cwd">): string | null {
  const file = config["TLS.CAFile"];
  return file === undefined ? null : resolve(cwd, file);
}

/** Where the authorities of clients are; undefined when none is wanted. */
export function clientCaFile(config: ProcessConfig, { cwd }: Pick<Shell, "cwd">): string | undefined {
  const file = config["TLS.ClientCAFile"];
  return file === undefined ? undefined : resolve(cwd, file);
}

/** Open the certificate of a process. Throws Failure that names the file and what is wrong with it. */
export async function openTls(
  files: TlsFiles | null,
  options: { readonly clock: Clock; readonly log: Logger },
): Promise<TlsSource | null> {
  if (files === null) return null;
  try {
    return await TlsSource.open({ files, ...options });
  } catch (cause) {
    if (!(cause instanceof TlsFileError)) throw cause;
    throw new Failure(`cannot use the TLS certificate: ${cause.message}`, { cause });
  }
}

/** Open the authorities that are announced to agents in place of those of the own certificate; null for none. */
export async function openAgentAuthorities(
  config: ProcessConfig,
  options: { readonly clock: Clock; readonly log: Logger },
): Promise<AuthorityFile | null> {
  const file = config["TLS.AgentCAFile"];
  if (file === undefined) return null;
  try {
    return await AuthorityFile.open({ file, ...options });
  } catch (cause) {
    if (!(cause instanceof TlsFileError)) throw cause;
    throw new Failure(`cannot announce authorities to agents: ${cause.message}`, { cause });
  }
}

/**
 * How processes of one cluster recognise each other over TLS: by their authority, and by a name that both certificates
 * are for, or the address.
 */
export function openPeerTls(source: TlsSource, caFile: string | null): PeerTls {
  const files = {
    caFile: caFile ?? undefined,
    certFile: undefined,
    keyFile: undefined,
    serverName: undefined,
  };
  return { read: () => readClientTls(files), ownNames: () => source.names };
}
