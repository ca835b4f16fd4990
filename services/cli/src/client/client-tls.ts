import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { UsageError, unreadableFile } from "../failure.ts";
import type { Shell } from "../shell.ts";
import type { RunFile } from "./data-directory.ts";

/** The flags of the command line. */
export interface TlsFlags {
  readonly caFile?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly tlsServerName?: string;
}

/** What Node's TLS takes. */
export interface TlsOptions {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly servername?: string;
}

/** What clients of a server have to trust. */
export interface Trust {
  /** PEM file of the authority, absolute; null for those that the system trusts, and in clear text. */
  readonly caFile: string | null;
  /** The name that the certificate is for; null when that is the address's. */
  readonly serverName: string | null;
}

/** How connections over TLS are made. */
export interface ClientTls {
  /** Whether HOST:PORT, without a scheme, means https:// here. */
  isMeant(hostAndPort: string): boolean;
  /** What to connect to a base URL with; nothing for clear text. Throws UsageError when a file cannot be read. */
  optionsFor(baseUrl: string): TlsOptions;
  /** What the clients of a base URL trust. */
  trustFor(baseUrl: string): Trust;
}

/**
 * Find the files of TLS. What is nearer wins: --ca-file, --client-cert, --client-key and --tls-server-name; their
 * environment variables; for the running `up` of this user, what it wrote. Throws UsageError for half a pair.
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
    throw new UsageError("--client-cert and --client-key go together");
  }
  const isNamed = [caFile, certFile, serverName].some(Boolean);
  const own = runFile?.tls ?? null;
  const isOwn = (hostAndPort: string) => own !== null && hostAndPort === runFile?.server;
  const read = (file: string) => readPem(resolve(cwd, file));
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
      return {
        ...(ca === null ? {} : { ca: read(ca) }),
        ...(certFile ? { cert: read(certFile) } : {}),
        ...(keyFile ? { key: read(keyFile) } : {}),
        ...(name === null ? {} : { servername: name }),
      };
    },
  };
}

function readPem(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw unreadableFile(path, cause);
  }
}
