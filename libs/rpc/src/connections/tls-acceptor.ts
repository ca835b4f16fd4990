import type net from "node:net";
import tls from "node:tls";
import { refuse } from "@rollcall/errors";
import type { TlsSource } from "@rollcall/identity";
import { counter, errorCode, type MetricsRegistry } from "@rollcall/process";
import { peerOf } from "../calls/client-address.ts";
import { RefusalServer } from "../limits/refusal-server.ts";
import type { StrangerLog } from "../limits/stranger-log.ts";

export interface TlsAcceptorOptions {
  readonly source: TlsSource;
  /** Whether clients must show a certificate. Default: as the source says. */
  readonly asksClients?: boolean;
  /** Receives failures. */
  readonly strangers: StrangerLog;
  readonly metrics: MetricsRegistry;
  /** How long a new connection may take to show its first bytes, and again to finish its handshake. */
  readonly limitMs: number;
  /** Protocols that are spoken here, the first ones preferred. */
  readonly protocols: readonly ("h2" | "http/1.1")[];
  /**
   * Takes over a connection whose handshake is done, and whose client has shown a certificate if it must. `raw` is what
   * carries it.
   */
  onSecure(socket: tls.TLSSocket, raw: net.Socket): void;
}

/** What a connection begins with. */
type Opening = "tls" | "http2" | "other";

// What every HTTP/2 connection with prior knowledge starts with; no HTTP/1.1 method does ("PRI" would be one).
const HTTP2_PREFACE = Buffer.from("PRI");
/** The first byte of a TLS handshake; no protocol of ours begins with it. */
const TLS_HANDSHAKE = 0x16;

/**
 * Makes TLS connections of a port's connections, with the certificate that its source has at that moment; those that
 * stand are not touched by a new one. A peer that speaks in clear text, or lacks a certificate, is told so and cut.
 */
export class TlsAcceptor {
  readonly #options: TlsAcceptorOptions;
  readonly #asksClients: boolean;
  readonly #server: tls.Server;
  readonly #toPlaintext = new RefusalServer(tlsRequired);
  readonly #toStranger = new RefusalServer(certificateRequired);
  /** Connections that were not taken over yet, by the address and port of their peer. */
  readonly #pending = new Map<string, net.Socket>();
  readonly #stopListening: () => void;

  constructor(options: TlsAcceptorOptions) {
    const { source, limitMs, protocols } = options;
    this.#options = options;
    this.#asksClients = options.asksClients ?? source.asksClients;
    this.#server = tls.createServer({
      ...source.context,
      requestCert: this.#asksClients,
      // Judged in #onSecure(), which can say why: Node would cut the connection without a word.
      rejectUnauthorized: false,
      ALPNProtocols: [...protocols],
      handshakeTimeout: limitMs,
    });
    this.#server.on("secureConnection", (socket) => this.#onSecure(socket));
    this.#server.on("tlsClientError", (error, socket) => this.#onFailure(error, socket));
    this.#stopListening = source.onChange((context) => this.#server.setSecureContext(context));
  }

  /** Begin with a new connection. */
  accept(socket: net.Socket): void {
    const peer = peerOf(socket);
    this.#pending.set(peer, socket);
    socket.once("close", () => this.#pending.delete(peer));
    recogniseOpening(socket, this.#options.limitMs, (opening) => {
      if (opening === "tls") {
        this.#server.emit("connection", socket);
        return;
      }
      this.#note(socket.remoteAddress, "plaintext", "clear text on a port that speaks TLS, refused");
      this.#toPlaintext.serve(socket, opening === "http2");
    });
  }

  /** Cut the connections that were not handed on yet, and stop following certificates. */
  close(): void {
    this.#stopListening();
    for (const socket of this.#pending.values()) socket.destroy();
  }

  #onSecure(socket: tls.TLSSocket): void {
    // What takes over listens for errors too. Until then an unheard one would end the process.
    socket.on("error", () => socket.destroy());
    if (this.#asksClients && !hasShownCertificate(socket)) {
      const problem = String(socket.authorizationError ?? "none was sent");
      const message = "client without a certificate of the authority for clients, refused";
      this.#note(socket.remoteAddress, "client_certificate", message, { problem });
      this.#toStranger.serve(socket, socket.alpnProtocol === "h2");
      return;
    }
    const peer = peerOf(socket);
    const raw = this.#pending.get(peer);
    this.#pending.delete(peer);
    // It went away while its last bytes were being decrypted.
    if (raw === undefined) socket.destroy();
    else this.#options.onSecure(socket, raw);
  }

  #onFailure(error: Error, socket: tls.TLSSocket): void {
    const code = errorCode(error) ?? "";
    const reason = FAILURES[code] ?? "other";
    this.#note(socket.remoteAddress, reason, "tls handshake failed", { code });
    // After a timeout Node leaves that to us.
    socket.destroy();
  }

  #note(peer = "", reason: string, message: string, fields: object = {}): void {
    const { strangers, metrics } = this.#options;
    counter(metrics, {
      name: "rollcall_tls_handshake_failures_total",
      help: "Connections to TLS ports that failed before or during the handshake, by reason.",
      labelNames: ["reason"],
    }).inc({ reason });
    // Balancers and port scans connect and leave: not worth a line.
    if (reason === "left") return;
    strangers.write({
      level: "warn",
      peer,
      what: reason,
      fields: { reason, ...fields },
      message,
      isFault: true,
    });
  }
}

/** Not `authorized` alone: that is true for a resumed session, too, that was begun without any certificate. */
function hasShownCertificate(socket: tls.TLSSocket): boolean {
  return socket.authorized && socket.getPeerX509Certificate() !== undefined;
}

function tlsRequired() {
  return refuse(
    "TLS_REQUIRED",
    "this port speaks TLS: use https:// in the address, and trust the authority of its certificate",
  );
}

function certificateRequired() {
  return refuse(
    "CLIENT_CERTIFICATE_REQUIRED",
    "this port takes only clients with a certificate of its authority for clients",
  );
}

/** What OpenSSL and Node call it, and what it means. */
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
 * Wait for as many bytes of a connection as tell the protocols apart, put them back, and pause it. A connection that
 * ends before, or shows too little within `limitMs`, is destroyed and never recognised.
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
