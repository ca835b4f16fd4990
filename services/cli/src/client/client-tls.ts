import { resolve } from "node:path";
import { readClientTls, TlsFileError, type ClientTls as TlsOptions } from "@rollcall/identity/client-tls";
import { isSystemError } from "@rollcall/process";
import { UsageError, unreadableFile } from "../failure.ts";
import type { Shell } from "../shell.ts";
import type { RunFile } from "./data-directory.ts";

export type { TlsOptions };

/** The command-line flags for TLS. */
export interface TlsFlags {
  readonly caFile?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly tlsServerName?: string;
}

/** The authority and server name that a client must trust to connect to a server. */
export interface Trust {
  /** Absolute path of the authority's PEM file; null to trust the system's authorities, and for clear text. */
  readonly caFile: string | null;
  /** The name in the server's certificate; null when this name is the host of the address. */
  readonly serverName: string | null;
}

export interface ClientTls {
  /** Whether HOST:PORT, without a scheme, means https://. */
  isMeant(hostAndPort: string): boolean;
  /**
   * The options to connect to a base URL with; empty for clear text. Throws UsageError when a file cannot be
   * used.
   */
  optionsFor(baseUrl: string): TlsOptions;
  /** The authority and server name that a client must trust to connect to a base URL. */
  trustFor(baseUrl: string): Trust;
}

/**
 * Find the TLS files. In order of precedence: --ca-file, --client-cert, --client-key and --tls-server-name; their
 * environment variables; the run file, for the running `up` of this user. Throws UsageError for a certificate
 * without a key, or a key without a certificate.
 */
export function createClientTls(
  flags: TlsFlags,
  { env, cwd }: Pick<Shell, "env" | "cwd">,
  runFile: RunFile | null,
): ClientTls {
  const caFile = flags.caFile || env.ROLLCALL_CA_FILE;
  const certFile = flags.clientCert || env.ROLLCALL_CLIENT_CERT;
  const keyFile = flags.clientKey || env.ROLLCALL_CLIENT_KEY;
  const serverName = flags.tlsServerName || env.ROLLCALL_TLS_SERVER_NAME;
  if (Boolean(certFile) !== Boolean(keyFile)) {
    throw new UsageError("--client-cert and --client-key must be used together");
  }
  const isNamed = [caFile, certFile, serverName].some(Boolean);
  const own = runFile?.tls ?? null;
  const isOwn = (hostAndPort: string) => own !== null && hostAndPort === runFile?.server;
  const pathOf = (file: string | undefined) => (file ? resolve(cwd, file) : undefined);
  const trustFor = (baseUrl: string): Trust => {
    const url = new URL(baseUrl);
    if (url.protocol !== "https:") return { caFile: null, serverName: null };
    const written = isOwn(url.host) ? own : null;
    const ca = caFile || written?.caFile;
    return { caFile: ca ? resolve(cwd, ca) : null, serverName: serverName || (written?.serverName ?? null) };
  };
  return {
    isMeant: (hostAndPort) => isNamed || isOwn(hostAndPort),
    trustFor,
    optionsFor: (baseUrl) => {
      if (new URL(baseUrl).protocol !== "https:") return {};
      const { caFile: ca, serverName: name } = trustFor(baseUrl);
      const pair = { certFile: pathOf(certFile), keyFile: pathOf(keyFile) };
      try {
        return readClientTls({ ...pair, caFile: ca ?? undefined, serverName: name ?? undefined });
      } catch (error) {
        if (!(error instanceof TlsFileError)) throw error;
        if (isSystemError(error.cause)) throw unreadableFile(error.file, error.cause);
        throw new UsageError(error.message, { cause: error });
      }
    },
  };
}
