import { readUrl, type UnreadUrl } from "./read-url.ts";

/** The address at which a client reaches a server. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  /** The scheme of the address; undefined for HOST:PORT. */
  readonly scheme: "http" | "https" | undefined;
}

const DEFAULT_PORTS = { http: 80, https: 443 } as const;

/**
 * Parse HOST:PORT, or a URL whose scheme selects TLS or plain text: https://HOST or http://HOST, with or without a
 * port. A path is rejected unless `paths` is true, because gRPC has none. The SDKs are tested with the same vectors.
 */
export function readServerAddress(
  written: string,
  { paths = false } = {},
): { readonly ok: true; readonly address: ServerAddress; readonly path: string } | UnreadUrl {
  const read = readUrl(written, { schemes: ["http", "https"], paths });
  if (!read.ok) return read;
  const scheme = read.scheme === null ? undefined : read.scheme === "https" ? "https" : "http";
  // Refuse HOST without a port. It would mean port 80, where no Rollcall service listens.
  if (scheme === undefined && read.port === null) return { ok: false, reason: "it has no port" };
  const port = read.port ?? DEFAULT_PORTS[scheme ?? "http"];
  return { ok: true, address: { host: read.host, port, scheme }, path: read.path };
}

/** An address for error messages, without anything that may be a password or a token. */
export function shownAddress(written: string): string {
  return written
    .trim()
    .replace(/^([A-Za-z][A-Za-z0-9+.-]*:\/\/)?[\s\S]*@/, "$1***@")
    .replace(/[?#][\s\S]*$/, "");
}
