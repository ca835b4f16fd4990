import { createHash, type X509Certificate } from "node:crypto";
import { request as httpRequest } from "node:http";
import { isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { certificatesIn, MOST_AUTHORITY_BYTES } from "./tls-files.ts";

/** The path where a server publishes its certificate's authority to any client. */
export const AUTHORITY_PATH = "/ca.pem";

const FETCH_LIMIT_MS = 10_000;

/** An authority cannot be fetched, or is not the expected one. The message says what to do. */
export class AuthorityError extends Error {
  override readonly name = "AuthorityError";
}

/** The server to fetch an authority from, and how to connect. */
export interface AuthorityServer {
  readonly host: string;
  readonly port: number;
  /** The name in the server's certificate, if it differs from the host. */
  readonly serverName?: string | undefined;
  /** Connects to the server, for example through a proxy. Default: a direct connection. */
  readonly connect?: (() => Promise<Socket>) | undefined;
  /** The only authorities to trust, as PEM. The server's name is then also checked. Default: nothing is checked. */
  readonly trusted?: string | undefined;
}

/** Format a certificate's fingerprint: "sha256:" and 64 hexadecimal digits. */
export function fingerprintOf(certificate: X509Certificate): string {
  return `sha256:${certificate.fingerprint256.replaceAll(":", "").toLowerCase()}`;
}

/**
 * Parse a fingerprint in the format of Rollcall or OpenSSL ("sha256 Fingerprint=AB:CD:..."); null when it is invalid.
 */
export function parseFingerprint(text: string): string | null {
  const [, written = ""] = /^(?:sha256(?: fingerprint=|:|=))?([0-9a-f:]+)$/i.exec(text.trim()) ?? [];
  const digits = written.replaceAll(":", "").toLowerCase();
  return digits.length === 64 ? `sha256:${digits}` : null;
}

/**
 * Fetch the authority with this fingerprint from a server that is not trusted yet. Returns it as PEM. No credentials
 * are sent, and nothing from this handshake is trusted: the server proves its identity on the next connection, which
 * must be verified with only this authority. Throws AuthorityError, or the error of the connection.
 */
export async function fetchAuthority(
  server: AuthorityServer,
  fingerprint: string,
  signal: AbortSignal,
): Promise<string> {
  const served = await fetchAuthorities(server, signal);
  const found = served.find((it) => fingerprintOf(it) === fingerprint);
  if (found !== undefined) return String(found);
  throw new AuthorityError(
    `the authority of ${addressOf(server)} has the fingerprint ${served.map(fingerprintOf).join(", ")}, not ` +
      `${fingerprint}: use the fingerprint that \`rollcall token create\` shows, or find out who answers there`,
  );
}

/**
 * Fetch the certificates that a server publishes as its authority; at least one. Throws the same errors as
 * fetchAuthority().
 */
export async function fetchAuthorities(
  server: AuthorityServer,
  signal: AbortSignal,
): Promise<readonly X509Certificate[]> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(FETCH_LIMIT_MS)]);
  const { status, body } = await get(server, AUTHORITY_PATH, limited);
  const address = addressOf(server);
  if (status === CLIENT_CERTIFICATE_REQUIRED) {
    throw new AuthorityError(
      `${address} hands out its authority only to clients with a certificate: copy the authority's file to this ` +
        "machine, and pass it with --ca-file",
    );
  }
  if (status !== 200) {
    throw new AuthorityError(
      `${address} serves no authority (status ${status}): set TLS.CAFile there, or copy the authority's file ` +
        "to this machine, and pass it with --ca-file",
    );
  }
  return certificatesIn(body, `https://${address}${AUTHORITY_PATH}`);
}

/** How a server answers a request for a path. */
export interface FoundPath {
  readonly status: number;
  /** The digest of the key of the server's certificate, as curl's --pinnedpubkey expects it: "sha256//...". */
  readonly pin: string;
}

/**
 * Request a path from a server whose certificate must be valid, for its authorities in `trusted` or else for those of
 * Node.js. Rejects if the connection fails.
 */
export async function findPath(server: AuthorityServer, path: string, signal: AbortSignal): Promise<FoundPath> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(FETCH_LIMIT_MS)]);
  const { status, pin } = await get(server, path, limited, { isVerified: true });
  return { status, pin };
}

/** Find a certificate by fingerprint in a stored PEM string; null when it is missing or unreadable. */
export function certificateOf(pem: string, fingerprint: string): string | null {
  try {
    const found = certificatesIn(Buffer.from(pem), "").find((it) => fingerprintOf(it) === fingerprint);
    return found === undefined ? null : String(found);
  } catch {
    // Return null, because a crash has truncated the stored string, so the certificate must be fetched again.
    return null;
  }
}

/** The HTTP status that servers return to clients without a certificate. */
const CLIENT_CERTIFICATE_REQUIRED = 401;

interface Fetched extends FoundPath {
  readonly body: Buffer;
}

async function get(
  server: AuthorityServer,
  path: string,
  signal: AbortSignal,
  { isVerified = server.trusted !== undefined } = {},
): Promise<Fetched> {
  const { host, port, serverName, trusted } = server;
  const carrier = await server.connect?.();
  const name = serverName ?? host;
  const socket = connectTls({
    ...(carrier === undefined ? { port } : { socket: carrier }),
    host,
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    // Skip verification when there are no trusted authorities. This is safe, because the response is public and its
    // fingerprint is checked.
    rejectUnauthorized: isVerified,
    ...(trusted === undefined ? {} : { ca: trusted }),
  });
  try {
    return await getOver(socket, { host: hostHeader(name, port), path }, signal);
  } finally {
    socket.destroy();
    carrier?.destroy();
  }
}

function getOver(
  socket: TLSSocket,
  { host, path }: { readonly host: string; readonly path: string },
  signal: AbortSignal,
): Promise<Fetched> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      path,
      headers: { host, connection: "close" },
      createConnection: () => socket,
      signal,
    });
    request.on("error", reject);
    request.on("response", (response) => {
      const pin = pinOf(socket);
      const parts: Buffer[] = [];
      let bytes = 0;
      response.on("error", reject);
      response.on("data", (part: Buffer) => {
        bytes += part.length;
        parts.push(part);
        if (bytes > MOST_AUTHORITY_BYTES)
          request.destroy(new AuthorityError(`${host} hands out more than ${MOST_AUTHORITY_BYTES} bytes`));
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, pin, body: Buffer.concat(parts) }));
    });
    request.end();
  });
}

function pinOf(socket: TLSSocket): string {
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: "spki", format: "der" });
  return key === undefined ? "" : `sha256//${createHash("sha256").update(key).digest("base64")}`;
}

function addressOf({ host, port }: AuthorityServer): string {
  return hostHeader(host, port);
}

function hostHeader(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
