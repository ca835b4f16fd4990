import { once } from "node:events";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import http2 from "node:http2";
import net, { type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { TlsSource } from "@rollcall/identity";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { HttpHandler } from "../calls/http-handler.ts";
import type { AnonymousLog } from "../limits/anonymous-log.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { ANONYMOUS_STREAMS, connectionOf, watchHttp1, watchHttp2 } from "./connection.ts";
import { ConnectionKeeper } from "./connection-keeper.ts";
import { handToHttp2 } from "./hand-over.ts";
import { listeningError } from "./listening-error.ts";
import { StoppableRequest } from "./stoppable-request.ts";
import { recogniseOpening, TlsAcceptor } from "./tls-acceptor.ts";

export interface PolyglotOptions {
  readonly host: string;
  readonly port: number;
  /** See RpcServerOptions. */
  readonly exclusive?: boolean;
  readonly handler: HttpHandler;
  /** How long a new connection can take to show its protocol. */
  readonly firstByteMs: number;
  /**
   * Maximum number of connections. At the limit, connections without a call are closed for new ones, the longest idle
   * first.
   */
  readonly maxConnections: number;
  /** How long a connection can be without a call in progress. Default 90 s. */
  readonly idleMs?: number;
  /** How long the headers of an HTTP/1.1 request can take to arrive. Default 60 s, as in Node.js. */
  readonly http1HeadersMs?: number;
  /** Serve only TLS, with these options; clear text if absent. */
  readonly tls?: {
    readonly source: TlsSource;
    /** See TlsAcceptorOptions. */
    readonly asksClients?: boolean;
  };
  /** Logs what anonymous clients do, and counts their costs. */
  readonly anonymousClients: AnonymousLog;
  /** The port's name in the log and in metrics. */
  readonly name: string;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly clock: Pick<Clock, "nowMs">;
  /** See ConnectionKeeperOptions. */
  readonly tickMs?: number;
  /** See ConnectionKeeperOptions. */
  readonly answerMs?: number;
}

/**
 * How long a connection can be without a call by default, in milliseconds. Kubernetes API servers keep an idle
 * connection for the same time.
 */
const IDLE_MS = 90_000;

const TCP_KEEPALIVE_MS = 60_000;
/**
 * Maximum size of the headers, the same as for HTTP/2. It is larger than the longest valid token, so that a token that
 * is too long gets a clear error.
 */
const MOST_HEADER_BYTES = 65_536;

const waiting = new WeakMap<Socket, Set<ServerResponse>>();

/**
 * Serves HTTP/1.1 and HTTP/2 on one port. In clear text, HTTP/2 requires prior knowledge; over TLS, ALPN negotiates the
 * protocol.
 */
export class PolyglotListener {
  readonly #net: net.Server;
  readonly #http1: http.Server;
  readonly #http2: http2.Http2Server;
  readonly #sockets = new Set<net.Socket>();
  // The open sessions. drain() and destroy() need them, because closing the HTTP/2 server of Node.js 22 does not close
  // its sessions.
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  readonly #unrecognised = new Set<net.Socket>();
  readonly #keeper: ConnectionKeeper;
  readonly #firstByteMs: number;
  readonly #tls: TlsAcceptor | null;
  #draining = false;

  private constructor(options: PolyglotOptions) {
    this.#firstByteMs = options.firstByteMs;
    this.#keeper = new ConnectionKeeper({
      ...options,
      accounts: options.anonymousClients.accounts,
      limits: {
        maxConnections: options.maxConnections,
        freshMs: options.firstByteMs,
        idleMs: options.idleMs ?? IDLE_MS,
        maxAnonymousOfAddress: Number.POSITIVE_INFINITY,
        spareBusyMs: Number.POSITIVE_INFINITY,
      },
    });
    const headersTimeout = options.http1HeadersMs ?? 60_000;
    const connectionsCheckingInterval = Math.min(headersTimeout, 30_000);
    this.#http1 = http.createServer(
      {
        ...{ headersTimeout, connectionsCheckingInterval, maxHeaderSize: MOST_HEADER_BYTES },
        IncomingMessage: StoppableRequest,
      },
      (request, response) => {
        if (request.socket.destroyed) return;
        if (this.#draining) response.setHeader("connection", "close");
        closeWithSocket(request, response);
        response.once("close", () => this.#closeIdleHttp1());
        loopBudget.run(connectionOf(request)?.address ?? "", () => {
          // Do nothing for clients that have disconnected in the meantime.
          if (response.destroyed || request.socket.destroyed) return false;
          options.handler(request, response);
          return true;
        });
      },
    );
    // Pretend that the server listens: otherwise Node.js does not enforce timeouts on slow requests.
    this.#http1.emit("listening");
    watchHttp1(this.#http1);
    this.#http2 = http2.createServer({ settings: { maxConcurrentStreams: ANONYMOUS_STREAMS } }, options.handler);
    this.#http2.on("session", (session) => this.#track(session));
    watchHttp2(this.#http2, true);
    this.#net = net.createServer(
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS },
      (socket) => this.#accept(socket),
    );
    this.#tls = options.tls === undefined ? null : this.#acceptTls(options, options.tls);
  }

  #acceptTls(
    { firstByteMs, metrics, anonymousClients }: PolyglotOptions,
    tls: NonNullable<PolyglotOptions["tls"]>,
  ): TlsAcceptor {
    return new TlsAcceptor({
      ...tls,
      metrics,
      anonymousClients,
      limitMs: firstByteMs,
      protocols: ["h2", "http/1.1"],
      onSecure: (socket, raw) => {
        this.#keeper.secured(socket, raw);
        this.#recognise(socket);
      },
    });
  }

  /** Start to listen. Rejects if the address is in use or does not belong to this machine. */
  static async listen(options: PolyglotOptions): Promise<PolyglotListener> {
    const listener = new PolyglotListener(options);
    const { host, port, exclusive = false } = options;
    listener.#net.listen({ host, port, exclusive });
    try {
      await once(listener.#net, "listening");
    } catch (error) {
      listener.destroy();
      throw listeningError(error, options.host, options.port);
    }
    // Report the error instead of letting it end the process: accepting connections can fail for a while, for lack of
    // file descriptors.
    listener.#net.on("error", (error) => listener.#keeper.notAccepted(error));
    return listener;
  }

  get port(): number {
    const address = this.#net.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  /**
   * Close connections without a call, at most `most` of each standing, because the process has run out of file
   * descriptors. Returns how many were closed.
   */
  spare(most: number): number {
    return this.#keeper.spare(most);
  }

  /**
   * Stop accepting connections, send GOAWAY, and let each connection end with its last call. Resolves when the last
   * connection has ended.
   */
  async drain(): Promise<void> {
    this.#draining = true;
    this.#net.close();
    this.#tls?.close();
    this.#keeper.refuseNewcomers();
    for (const socket of this.#unrecognised) socket.destroy();
    for (const session of this.#sessions) session.close();
    this.#closeIdleHttp1();
    await Promise.all([...this.#sockets].map((socket) => once(socket, "close").catch(() => {})));
    this.#keeper.close();
  }

  /** Cut all remaining connections. */
  destroy(): void {
    this.#net.close();
    this.#tls?.close();
    this.#http1.close();
    this.#keeper.close();
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }

  #closeIdleHttp1(): void {
    if (this.#draining) this.#http1.closeIdleConnections();
  }

  #track(session: http2.ServerHttp2Session): void {
    this.#sessions.add(session);
    session.once("close", () => this.#sessions.delete(session));
    // Ignore errors, because bad frames have already ended the session. Without a listener, the error event would end
    // the process.
    session.on("error", ignore);
    if (this.#draining) session.close();
  }

  #accept(socket: net.Socket): void {
    socket.on("error", () => socket.destroy());
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    this.#keeper.accept(socket, () => {
      if (this.#tls === null) this.#recognise(socket);
      else this.#tls.accept(socket);
    });
  }

  /** Wait for enough bytes to distinguish the protocols, put them back, and hand the connection over. */
  #recognise(socket: net.Socket): void {
    const recognised = () => this.#unrecognised.delete(socket);
    this.#unrecognised.add(socket);
    socket.once("close", recognised);
    recogniseOpening(socket, this.#firstByteMs, (opening) => {
      recognised();
      // Use the protocol that ALPN has selected over TLS. In that case, the wait only detects clients that send
      // nothing.
      const isHttp2 = isTls(socket) ? socket.alpnProtocol === "h2" : opening === "http2";
      this.#serve(socket, isHttp2);
    });
  }

  #serve(socket: net.Socket, isHttp2: boolean): void {
    if (isHttp2) {
      handToHttp2(this.#http2, socket, () => this.#http2.emit("connection", socket));
      return;
    }
    this.#keeper.recognised(socket);
    this.#http1.emit("connection", socket);
    socket.resume();
  }
}

function ignore(): void {}

function isTls(socket: net.Socket): socket is TLSSocket {
  return "encrypted" in socket;
}

/**
 * Close an HTTP/1.1 response with its connection. Node.js closes only the response that is being written. Without this,
 * responses to pipelined requests would stay open forever, and keep counting towards limits.
 */
function closeWithSocket({ socket }: IncomingMessage, response: ServerResponse): void {
  // Do nothing for the response that is being written, because Node.js will close it.
  if (response.socket !== null) return;
  let behind = waiting.get(socket);
  if (behind === undefined) {
    const created = new Set<ServerResponse>();
    socket.once("close", () => {
      for (const one of created) one.emit("close");
    });
    waiting.set(socket, created);
    behind = created;
  }
  const all = behind;
  all.add(response);
  response.once("close", () => all.delete(response));
}
