import type { X509Certificate } from "node:crypto";
import { request as httpRequest } from "node:http";
import { isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { certificatesIn, MOST_AUTHORITY_BYTES } from "./tls-files.ts";

/** Where a server hands out the authority of its certificate, to any client. */
export const AUTHORITY_PATH = "/ca.pem";

const FETCH_LIMIT_MS = 10_000;

/** An authority that cannot be fetched, or is not the one that was asked for. The message says what to do. */
export class AuthorityError extends Error {
  override readonly name = "AuthorityError";
}

/** Where an authority is fetched, and how. */
export interface AuthorityServer {
  readonly host: string;
  readonly port: number;
  /** The name that the server's certificate is for, when that is not the host. */
  readonly serverName?: string | undefined;
  /** Connects to the server, through a proxy for example. Default: a connection of its own. */
  readonly connect?: (() => Promise<Socket>) | undefined;
  /** PEM to trust, alone, and with the server's name checked. Default: nothing is checked. */
  readonly trusted?: string | undefined;
}

/** Write a certificate's fingerprint: "sha256:" and 64 hexadecimal digits. */
export function fingerprintOf(certificate: X509Certificate): string {
  return `sha256:${certificate.fingerprint256.replaceAll(":", "").toLowerCase()}`;
}

/** Read a fingerprint, as Rollcall writes it or as OpenSSL does ("sha256 Fingerprint=AB:CD:..."); null for no such. */
export function parseFingerprint(text: string): string | null {
  const [, written = ""] = /^(?:sha256(?: fingerprint=|:|=))?([0-9a-f:]+)$/i.exec(text.trim()) ?? [];
  const digits = written.replaceAll(":", "").toLowerCase();
  return digits.length === 64 ? `sha256:${digits}` : null;
}

/**
 * Fetch the authority of this fingerprint from a server that is not trusted yet, and return it as PEM. No credentials
 * are sent, and nothing that the server shows in the handshake counts: it proves itself by the next connection, which
 * has to be verified with this authority alone. Throws AuthorityError, or what the connection failed with.
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
      `${fingerprint}: take the fingerprint that \`rollcall token create\` shows, or find out what answers there`,
  );
}

/** Fetch the certificates that a server hands out as its authority; at least one. Throws like fetchAuthority(). */
export async function fetchAuthorities(
  server: AuthorityServer,
  signal: AbortSignal,
): Promise<readonly X509Certificate[]> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(FETCH_LIMIT_MS)]);
  const { status, body } = await get(server, limited);
  const address = addressOf(server);
  if (status === CLIENT_CERTIFICATE_REQUIRED) {
    throw new AuthorityError(
      `${address} hands out its authority only to clients with a certificate: copy the authority's file to this ` +
        "machine, and name it with --ca-file",
    );
  }
  if (status !== 200) {
    throw new AuthorityError(
      `${address} hands out no authority (it answers ${status}): set TLS.CAFile there, or copy the authority's file ` +
        "to this machine, and name it with --ca-file",
    );
  }
  return certificatesIn(body, `https://${address}${AUTHORITY_PATH}`);
}

/** Find the certificate of a fingerprint in PEM that was kept; null when it is not there, or cannot be read. */
export function certificateOf(pem: string, fingerprint: string): string | null {
  try {
    const found = certificatesIn(Buffer.from(pem), "").find((it) => fingerprintOf(it) === fingerprint);
    return found === undefined ? null : String(found);
  } catch {
    // Cut short by a crash: it is fetched again.
    return null;
  }
}

/** The status of HTTP with which servers answer clients that lack a certificate. */
const CLIENT_CERTIFICATE_REQUIRED = 401;

interface Fetched {
  readonly status: number;
  readonly body: Buffer;
}

async function get(server: AuthorityServer, signal: AbortSignal): Promise<Fetched> {
  const { host, port, serverName, trusted } = server;
  const carrier = await server.connect?.();
  const name = serverName ?? host;
  const socket = connectTls({
    ...(carrier === undefined ? { port } : { socket: carrier }),
    host,
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    // Without an authority there is nothing to check with. What comes is public, and is checked by its fingerprint.
    rejectUnauthorized: trusted !== undefined,
    ...(trusted === undefined ? {} : { ca: trusted }),
  });
  try {
    return await getOver(socket, hostHeader(name, port), signal);
  } finally {
    socket.destroy();
    carrier?.destroy();
  }
}

function getOver(socket: Socket, host: string, signal: AbortSignal): Promise<Fetched> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      path: AUTHORITY_PATH,
      headers: { host, connection: "close" },
      createConnection: () => socket,
      signal,
    });
    request.on("error", reject);
    request.on("response", (response) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      response.on("error", reject);
      response.on("data", (part: Buffer) => {
        bytes += part.length;
        parts.push(part);
        if (bytes > MOST_AUTHORITY_BYTES)
          request.destroy(new AuthorityError(`${host} hands out no authority: too much`));
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts) }));
    });
    request.end();
  });
}

function addressOf({ host, port }: AuthorityServer): string {
  return hostHeader(host, port);
}

function hostHeader(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
