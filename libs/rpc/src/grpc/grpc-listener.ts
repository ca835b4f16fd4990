import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { refuse, toConnectError } from "@rollcall/errors";
import type { TlsSource } from "@rollcall/identity";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import { closeAnswered } from "../calls/http-handler.ts";
import { ANONYMOUS_STREAMS, watchHttp2 } from "../connections/connection.ts";
import { ConnectionKeeper } from "../connections/connection-keeper.ts";
import { handToHttp2 } from "../connections/hand-over.ts";
import { listeningError } from "../connections/listening-error.ts";
import { TlsAcceptor } from "../connections/tls-acceptor.ts";
import type { AnonymousLog } from "../limits/anonymous-log.ts";
import type { ConnectionTimes } from "../server-options.ts";
import { FrameCall, type FrameMethod } from "./frame-call.ts";
import { answerWithTrailers, trailersOf } from "./grpc-envelope.ts";

export interface GrpcListenerOptions {
  readonly host: string;
  /** The port to listen on; 0 picks a free one. */
  readonly port: number;
  /** The certificates to serve TLS with; clear text if absent. */
  readonly tls?: TlsSource;
  readonly name?: string;
  readonly maxConnections?: number;
  readonly maxAnonymousOfAddress?: number;
  readonly connectionTimes?: ConnectionTimes;
  readonly log: Logger;
  readonly anonymousClients: AnonymousLog;
  readonly metrics: MetricsRegistry;
  readonly clock: Pick<Clock, "nowMs">;
  /** Get the method that a path names. */
  methodAt(path: string): FrameMethod<unknown>;
}

/**
 * How long a peer can send no data before the kernel probes whether the peer is alive, ten times in ten seconds. A peer
 * that sends heartbeats is never probed. Unlike HTTP/2 pings, the probes wake no process.
 */
const PEER_SILENCE_MS = 30_000;
/** How long a connection can take to send its first bytes, and to finish its handshake. */
const HANDSHAKE_MS = 10_000;
/**
 * How long a connection can be without a call. An agent opens its stream immediately, and health checks may call
 * repeatedly.
 */
const IDLE_MS = 30_000;
/**
 * How long an anonymous connection can be busy before it is closed to make room. An agent sends its Hello within 10 s
 * and then waits for the response, so a connection that is busy for longer carries other calls.
 */
const SPARE_BUSY_MS = 30_000;
const DEFAULT_MAX_CONNECTIONS = 65_536;
/**
 * Default maximum number of anonymous connections per address. It is enough for a thousand agents behind one address
 * that reconnect at the same moment, and a thousand more that are a second late with their Hello.
 */
const DEFAULT_MAX_ANONYMOUS = 2_048;

/**
 * Listens on a port and serves gRPC over HTTP/2. Certificates, clear text and anonymous clients are handled as on all
 * other ports, and the kernel probes peers that have fallen silent.
 */
export class GrpcListener {
  readonly keeper: ConnectionKeeper;
  readonly #net: net.Server;
  readonly #http2: http2.Http2Server;
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  readonly #tls: TlsAcceptor | null;
  readonly #methodAt: GrpcListenerOptions["methodAt"];

  private constructor(options: GrpcListenerOptions) {
    const { tls, methodAt } = options;
    this.#methodAt = methodAt;
    this.keeper = new ConnectionKeeper({
      name: "agents",
      ...options,
      ...options.connectionTimes,
      accounts: options.anonymousClients.accounts,
      limits: {
        maxConnections: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
        maxAnonymousOfAddress: options.maxAnonymousOfAddress ?? DEFAULT_MAX_ANONYMOUS,
        freshMs: HANDSHAKE_MS,
        idleMs: options.connectionTimes?.idleMs ?? IDLE_MS,
        spareBusyMs: SPARE_BUSY_MS,
      },
    });
    // Limit the streams of a connection as for anonymous clients of the API. A proxy that carries the streams of more
    // agents opens another connection.
    this.#http2 = http2.createServer({ settings: { maxConcurrentStreams: ANONYMOUS_STREAMS } });
    const sessions = this.#sessions;
    // All sessions share this listener, because a closure for each would cost memory for each agent.
    const forget = function (this: http2.ServerHttp2Session) {
      sessions.delete(this);
    };
    this.#http2.on("session", (session) => {
      sessions.add(session);
      session.on("close", forget);
    });
    this.#http2.on("stream", (stream: http2.ServerHttp2Stream, headers) => this.#serve(stream, headers));
    // Do not count SETTINGS frames, because that would cost memory for each agent. The limit of nghttp2 or the limit of
    // bytes stops a flood of them.
    watchHttp2(this.#http2, false);
    this.#tls = tls === undefined ? null : this.#acceptTls(tls, options);
    this.#net = net.createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: PEER_SILENCE_MS }, (socket) =>
      this.#accept(socket),
    );
  }

  /** Start to listen. Rejects if the address is in use or does not belong to this machine. */
  static async listen(options: GrpcListenerOptions): Promise<GrpcListener> {
    const listener = new GrpcListener(options);
    listener.#net.listen(options.port, options.host);
    try {
      await once(listener.#net, "listening");
    } catch (error) {
      listener.#tls?.close();
      listener.keeper.close();
      throw listeningError(error, options.host, options.port);
    }
    // Report the error instead of letting it end the process: accepting connections can fail for a while, for lack of
    // file descriptors.
    listener.#net.on("error", (error) => listener.keeper.notAccepted(error));
    return listener;
  }

  get port(): number {
    const address = this.#net.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Refuse new connections, send GOAWAY, and cut the calls that remain after `graceMs`. Resolves when all ended. */
  async close(graceMs: number): Promise<void> {
    this.#net.close();
    this.#tls?.close();
    this.keeper.refuseNewcomers();
    const sessions = [...this.#sessions];
    const cut = setTimeout(() => {
      for (const session of sessions) session.destroy(undefined, http2.constants.NGHTTP2_CANCEL);
    }, graceMs);
    const ended = sessions.map((session) => new Promise((resolve) => session.once("close", resolve)));
    for (const session of sessions) session.close();
    await Promise.all(ended);
    clearTimeout(cut);
    this.keeper.close();
  }

  #accept(socket: net.Socket): void {
    // Destroy the socket on an error. Before the session listens for errors, an unhandled error event would end the
    // process.
    socket.on("error", destroyIt);
    this.keeper.accept(socket, () => {
      if (this.#tls === null) this.#handOver(socket);
      else this.#tls.accept(socket);
    });
  }

  #acceptTls(source: TlsSource, { anonymousClients, metrics }: GrpcListenerOptions): TlsAcceptor {
    return new TlsAcceptor({
      source,
      anonymousClients,
      metrics,
      limitMs: HANDSHAKE_MS,
      protocols: ["h2"],
      onSecure: (socket, raw) => {
        this.keeper.secured(socket, raw);
        // Require ALPN, which all gRPC clients use. Without ALPN, the client could speak any protocol.
        if (socket.alpnProtocol === "h2") this.#handOver(socket);
        else socket.destroy();
      },
    });
  }

  #handOver(socket: net.Socket): void {
    handToHttp2(this.#http2, socket, () => this.#http2.emit("connection", socket));
  }

  /**
   * Serve a call. Calls with compressed messages are refused with COMPRESSION_NOT_SUPPORTED and the supported
   * encodings, as gRPC's specification requires: compression would not make messages of a few dozen bytes smaller.
   */
  #serve(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void {
    const { ":method": verb, ":path": path = "", "content-type": type = "" } = headers;
    const { "grpc-encoding": encoding = "identity" } = headers;
    if (!type.startsWith("application/grpc")) answer(stream, { ":status": 415 });
    else if (verb !== "POST") answer(stream, { ":status": 405, allow: "POST" });
    else if (encoding !== "identity") refuseCompressed(stream);
    else FrameCall.open(this.#methodAt(path), stream, headers);
  }
}

function destroyIt(this: net.Socket): void {
  this.destroy();
}

/** Answer a request that is no gRPC call. */
function answer(stream: http2.ServerHttp2Stream, headers: http2.OutgoingHttpHeaders): void {
  stream.on("error", () => {});
  stream.respond(headers, { endStream: true });
  closeAnswered(stream);
}

function refuseCompressed(stream: http2.ServerHttp2Stream): void {
  stream.on("error", () => {});
  const message = "this port does not accept compressed messages: send them with grpc-encoding identity";
  answerWithTrailers(stream, trailersOf(toConnectError(refuse("COMPRESSION_NOT_SUPPORTED", message))));
  closeAnswered(stream);
}
