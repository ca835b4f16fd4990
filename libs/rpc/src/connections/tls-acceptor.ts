import type net from "node:net";
import tls from "node:tls";
import { refuse } from "@rollcall/errors";
import type { TlsSource } from "@rollcall/identity";
import { counter, errorCode, type MetricsRegistry } from "@rollcall/process";
import { peerOf } from "../calls/client-address.ts";
import type { AnonymousLog } from "../limits/anonymous-log.ts";
import { RefusalServer } from "./refusal-server.ts";

export interface TlsAcceptorOptions {
  readonly source: TlsSource;
  /** Whether clients must present a certificate. By default, the TLS source decides. */
  readonly asksClients?: boolean;
  /** Logs failed handshakes and refused clients. */
  readonly anonymousClients: AnonymousLog;
  readonly metrics: MetricsRegistry;
  /** How long a new connection can take to send its first bytes. The handshake can take the same time again. */
  readonly limitMs: number;
  /** The supported protocols, in order of preference. */
  readonly protocols: readonly ("h2" | "http/1.1")[];
  /**
   * Takes over a connection whose handshake is complete, and whose client has presented a certificate if one is
   * required. `raw` carries the encrypted bytes.
   */
  onSecure(socket: tls.TLSSocket, raw: net.Socket): void;
}

/** The protocol that a connection's first bytes indicate. */
type Opening = "tls" | "http2" | "other";

// The first bytes of every HTTP/2 connection with prior knowledge. No HTTP/1.1 method starts like this.
const HTTP2_PREFACE = Buffer.from("PRI");
/** The first byte of a TLS handshake. No other protocol that is served starts with it. */
const TLS_HANDSHAKE = 0x16;

/**
 * Wraps the connections of a port in TLS, with the current certificate of its source. A new certificate does not affect
 * existing connections. A peer that sends clear text, or no certificate although one is required, gets an error and is
 * cut.
 */
export class TlsAcceptor {
  readonly #options: TlsAcceptorOptions;
  readonly #asksClients: boolean;
  readonly #server: tls.Server;
  readonly #toPlaintext = new RefusalServer(tlsRequired);
  readonly #toAnonymousClient = new RefusalServer(certificateRequired);
  /** Connections that are not yet handed over, keyed by the address and port of their peer. */
  readonly #pending = new Map<string, net.Socket>();
  readonly #stopListening: () => void;

  constructor(options: TlsAcceptorOptions) {
    const { source, limitMs, protocols } = options;
    this.#options = options;
    this.#asksClients = options.asksClients ?? source.asksClients;
    this.#server = tls.createServer({
      ...source.context,
      requestCert: this.#asksClients,
      // Let #onSecure() check the certificate, because it can report the reason. Node.js would cut the connection
      // silently.
      rejectUnauthorized: false,
      ALPNProtocols: [...protocols],
      handshakeTimeout: limitMs,
    });
    this.#server.on("secureConnection", (socket) => this.#onSecure(socket));
    this.#server.on("tlsClientError", (error, socket) => this.#onFailure(error, socket));
    this.#stopListening = source.onChange((context) => this.#server.setSecureContext(context));
  }

  /** Start handling a new connection. */
  accept(socket: net.Socket): void {
    const peer = peerOf(socket);
    this.#pending.set(peer, socket);
    socket.once("close", () => this.#pending.delete(peer));
    recogniseOpening(socket, this.#options.limitMs, (opening) => {
      if (opening === "tls") {
        this.#server.emit("connection", socket);
        return;
      }
      this.#note(socket.remoteAddress, "plaintext", "refused clear text on a TLS port");
      this.#toPlaintext.serve(socket, opening === "http2");
    });
  }

  /** Cut the connections that are not yet handed over, and stop following changes to the certificate. */
  close(): void {
    this.#stopListening();
    for (const socket of this.#pending.values()) socket.destroy();
  }

  #onSecure(socket: tls.TLSSocket): void {
    // Destroy the socket on an error. Before the new owner listens for errors, an unhandled error event would end the
    // process.
    socket.on("error", () => socket.destroy());
    if (this.#asksClients && !hasShownCertificate(socket)) {
      const problem = String(socket.authorizationError ?? "none was sent");
      const message = "refused a client without a certificate of the client authority";
      this.#note(socket.remoteAddress, "client_certificate", message, { problem });
      this.#toAnonymousClient.serve(socket, socket.alpnProtocol === "h2");
      return;
    }
    const peer = peerOf(socket);
    const raw = this.#pending.get(peer);
    this.#pending.delete(peer);
    // Destroy the socket if the peer disconnected while its last bytes were being decrypted.
    if (raw === undefined) socket.destroy();
    else this.#options.onSecure(socket, raw);
  }

  #onFailure(error: Error, socket: tls.TLSSocket): void {
    const code = errorCode(error) ?? "";
    const reason = FAILURES[code] ?? "other";
    this.#note(socket.remoteAddress, reason, "tls handshake failed", { code });
    // Destroy the socket, because Node.js does not do so after a timeout of the handshake.
    socket.destroy();
  }

  #note(peer = "", reason: string, message: string, fields: object = {}): void {
    const { anonymousClients, metrics } = this.#options;
    counter(metrics, {
      name: "rollcall_tls_handshake_failures_total",
      help: "Connections to TLS ports that failed before or during the handshake, by reason.",
      labelNames: ["reason"],
    }).inc({ reason });
    // Log nothing about clients that connect and leave, such as load balancers and port scans.
    if (reason === "left") return;
    anonymousClients.write({
      level: "warn",
      peer,
      what: reason,
      fields: { reason, ...fields },
      message,
      isFault: true,
    });
  }
}

/**
 * Whether the client has presented a valid certificate. `authorized` is not enough: it is also true for a resumed
 * session that began without a certificate.
 */
function hasShownCertificate(socket: tls.TLSSocket): boolean {
  return socket.authorized && socket.getPeerX509Certificate() !== undefined;
}

function tlsRequired() {
  return refuse(
    "TLS_REQUIRED",
    "this port requires TLS: use https:// in the address, and trust the authority of its certificate",
  );
}

function certificateRequired() {
  return refuse(
    "CLIENT_CERTIFICATE_REQUIRED",
    "this port requires a client certificate signed by its client authority",
  );
}

/** Descriptions of failed handshakes, keyed by the error codes of OpenSSL and Node.js. */
const FAILURES: Readonly<Record<string, string>> = {
  ECONNRESET: "left",
  EPIPE: "left",
  ERR_TLS_HANDSHAKE_TIMEOUT: "timeout",
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: "refused_by_client",
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: "refused_by_client",
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: "refused_by_client",
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: "refused_by_client",
  ERR_SSL_UNSUPPORTED_PROTOCOL: "version",
  ERR_SSL_NO_SHARED_CIPHER: "version",
};

/**
 * Wait for enough bytes of a connection to distinguish the protocols, put them back, and pause the connection. A
 * connection that ends earlier, or sends too little within `limitMs`, is destroyed, and `onRecognised` is not called.
 */
export function recogniseOpening(socket: net.Socket, limitMs: number, onRecognised: (opening: Opening) => void): void {
  const timer = setTimeout(() => socket.destroy(), limitMs);
  const onClose = () => clearTimeout(timer);
  socket.once("close", onClose);
  let seen: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const opening = openingOf(seen);
    if (opening === null) return;
    clearTimeout(timer);
    socket.off("close", onClose);
    socket.off("data", onData);
    socket.pause();
    socket.unshift(seen);
    onRecognised(opening);
  };
  socket.on("data", onData);
}

function openingOf(seen: Buffer): Opening | null {
  if (seen[0] === TLS_HANDSHAKE) return "tls";
  const compared = Math.min(seen.length, HTTP2_PREFACE.length);
  if (!seen.subarray(0, compared).equals(HTTP2_PREFACE.subarray(0, compared))) return "other";
  return seen.length < HTTP2_PREFACE.length ? null : "http2";
}
