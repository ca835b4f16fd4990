import { once } from "node:events";
import { request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls, TLSSocket } from "node:tls";
import { explainTlsError } from "@rollcall/domain";
import type { TlsOptions } from "../client/client-tls.ts";
import { systemCodeOf } from "../failure.ts";

/** An address to probe. */
export interface ProbedAddress {
  /** The address as displayed. */
  readonly subject: string;
  readonly host: string;
  readonly port: number;
  /** The client's TLS options; null for clear text. */
  readonly tls: TlsOptions | null;
  /** Whether clients use HTTP/2 in clear text. Over TLS, client and server negotiate it. */
  readonly isHttp2: boolean;
  /** Time limit for the server to respond, in milliseconds. */
  readonly timeoutMs: number;
}

/** The failure of an address that accepts connections but does not respond in time. */
export const NO_ANSWER = "NO_ANSWER";
/** The failure of an address that accepts no connection in time. */
export const NO_CONNECTION = "ETIMEDOUT";

/** The result of calling an address. */
export interface Probe {
  readonly subject: string;
  readonly host: string;
  /** Why the call failed, as the code of a system error or in words; null when it succeeded. */
  readonly failure: string | null;
  /** The certificate that the server presented; null without one, and for clear text. */
  readonly certificate: ShownCertificate | null;
  readonly isTls: boolean;
}

/** A certificate that a server presented. */
export interface ShownCertificate {
  readonly endsAtMs: number;
  /** Why the certificate is not trusted, as OpenSSL's code and text; empty when it is trusted. */
  readonly distrust: string;
  /** The length of the chain that was sent, including this certificate. */
  readonly chain: number;
}

const CONNECT_LIMIT_MS = 3_000;
const LONGEST_CHAIN = 10;

/**
 * Make the simplest call to an address and, over TLS, read the server's certificate. A connection alone proves
 * nothing, because the system accepts it for a stopped process. Never rejects.
 */
export async function probeAddress(address: ProbedAddress, signal: AbortSignal): Promise<Probe> {
  const { subject, host, tls, timeoutMs } = address;
  const probe = { subject, host, isTls: tls !== null };
  try {
    const socket = await connectOnce(address, AbortSignal.any([signal, AbortSignal.timeout(CONNECT_LIMIT_MS)]));
    const certificate = socket instanceof TLSSocket ? certificateOf(socket) : null;
    try {
      await answerOf(socket, address, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
    } catch (error) {
      if (!asksForCertificate(error, address)) throw error;
    } finally {
      socket.destroy();
    }
    return { ...probe, failure: null, certificate };
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    return { ...probe, failure: systemCodeOf(error) ?? words, certificate: null };
  }
}

/** Whether a server refuses us only because we have no certificate for it. Such a server does respond. */
function asksForCertificate(error: unknown, { tls }: ProbedAddress): boolean {
  if (tls === null || tls.cert !== undefined || !(error instanceof Error)) return false;
  const code = "code" in error ? `${String(error.code)} ` : "";
  return explainTlsError(`${code}${error.message}`)?.option === "client-certificate";
}

function connectOnce({ host, port, tls }: ProbedAddress, signal: AbortSignal): Promise<Socket> {
  const { servername: name = host, ...pems } = tls ?? {};
  // Send no server name for an IP address, because TLS does not allow one.
  const servername = /^[\d.]+$|:/.test(name) ? {} : { servername: name };
  const options = { host, port, rejectUnauthorized: false, ALPNProtocols: ["h2", "http/1.1"] };
  const socket = tls === null ? connect({ host, port }) : connectTls({ ...options, ...pems, ...servername });
  const connected = once(socket, tls === null ? "connect" : "secureConnect", { signal });
  return connected.then(
    () => socket,
    (error: unknown) => {
      // Distinguish the two failures: a stopped process leaves TLS unanswered after the system has accepted the
      // connection.
      const failure = new Error(socket.connecting ? NO_CONNECTION : NO_ANSWER);
      socket.destroy();
      throw signal.aborted ? failure : error;
    },
  );
}

/** Wait for the first response: the settings of HTTP/2, or the response to a request, whatever it is. */
async function answerOf(socket: Socket, { host, isHttp2 }: ProbedAddress, signal: AbortSignal): Promise<void> {
  const speaksHttp2 = socket instanceof TLSSocket ? socket.alpnProtocol === "h2" : isHttp2;
  const createConnection = () => socket;
  const call = speaksHttp2
    ? connectHttp2("http://address", { createConnection })
    : request({ createConnection, path: "/", headers: { host } }).end();
  // Ignore errors after the response or after the time limit, because no caller waits any longer.
  call.on("error", () => {});
  try {
    await once(call, speaksHttp2 ? "remoteSettings" : "response", { signal });
  } catch (error) {
    throw signal.aborted ? new Error(NO_ANSWER) : error;
  } finally {
    call.destroy();
  }
}

function certificateOf(socket: TLSSocket): ShownCertificate {
  const certificate = socket.getPeerCertificate(true);
  let chain = 1;
  let current = certificate;
  while (chain < LONGEST_CHAIN && current.issuerCertificate && current.issuerCertificate !== current) {
    current = current.issuerCertificate;
    chain += 1;
  }
  const error: unknown = socket.authorizationError;
  const distrust = socket.authorized || !error ? "" : distrustText(error);
  return { endsAtMs: Date.parse(certificate.valid_to), distrust, chain };
}

/**
 * The text of an error about an untrusted certificate. Some releases of Node.js pass only the code, others an
 * Error.
 */
function distrustText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error ? `${String(error.code)} ` : "";
  return `${code}${error.message}`;
}
