import { Failure } from "@rollcall/cli";
import { AuthorityFile, readClientTls, TlsFileError, type TlsFiles, TlsSource } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import type { PeerTls } from "@rollcall/rpc";
import type { ProcessConfig } from "../config/process-keys.ts";

/** The configured certificate files; null without TLS. */
export function configuredTlsFiles(config: ProcessConfig): TlsFiles | null {
  const certFile = config["TLS.CertFile"];
  const keyFile = config["TLS.KeyFile"];
  if (certFile === undefined || keyFile === undefined) return null;
  return { certFile, keyFile, clientCaFile: config["TLS.ClientCAFile"], caFile: config["TLS.CAFile"] };
}

/** Open the certificate of a process. Throws a Failure that names the file and the problem. */
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

/**
 * Open the authorities that TLS.AgentCAFile announces to agents instead of those of the process's own certificate;
 * null if it is not set.
 */
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
 * Open the settings with which processes of one cluster verify each other over TLS: by their authority, and by the
 * address or a name that both certificates contain.
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
