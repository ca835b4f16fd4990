import { readUrl, type UnreadUrl } from "./read-url.ts";

/** Where a client finds a server. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  /** As the address says; undefined when it is HOST:PORT. */
  readonly scheme: "http" | "https" | undefined;
}

const DEFAULT_PORTS = { http: 80, https: 443 } as const;

/**
 * Read HOST:PORT, or a URL that says whether to speak TLS: https://HOST or http://HOST, with or without a port. A path
 * is refused unless `paths` is true: gRPC has none. The SDKs read addresses by the same vectors.
 */
export function readServerAddress(
  written: string,
  { paths = false } = {},
): { readonly ok: true; readonly address: ServerAddress; readonly path: string } | UnreadUrl {
  const read = readUrl(written, { schemes: ["http", "https"], paths });
  if (!read.ok) return read;
  const scheme = read.scheme === null ? undefined : read.scheme === "https" ? "https" : "http";
  // Without a port, HOST would silently mean port 80, where nothing of ours listens.
  if (scheme === undefined && read.port === null) return { ok: false, reason: "it has no port" };
  const port = read.port ?? DEFAULT_PORTS[scheme ?? "http"];
  return { ok: true, address: { host: read.host, port, scheme }, path: read.path };
}

/** An address as errors show it: without what may be a password or a token. */
export function shownAddress(written: string): string {
  return written
    .trim()
    .replace(/^([A-Za-z][A-Za-z0-9+.-]*:\/\/)?[\s\S]*@/, "$1***@")
    .replace(/[?#][\s\S]*$/, "");
}
