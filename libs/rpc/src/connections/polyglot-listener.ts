import { once } from "node:events";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import http2 from "node:http2";
import net, { type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { TlsSource } from "@rollcall/identity";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { HttpHandler } from "../calls/http-handler.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import type { StrangerLog } from "../limits/stranger-log.ts";
import { connectionOf, STRANGERS_STREAMS } from "./connection.ts";
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
  /** How long a new connection may take to show which protocol it speaks. */
  readonly firstByteMs: number;
  /** Most connections at a time. At the limit those without a call give way to new ones, the longest idle first. */
  readonly maxConnections: number;
  /** How long a connection may have no call under way. Default 90 s. */
  readonly idleMs?: number;
  /** How long the headers of an HTTP/1.1 request may take. Default 60 s, Node's own. */
  readonly http1HeadersMs?: number;
  /** Speak TLS, and nothing else. In clear text when absent. */
  readonly tls?: {
    readonly source: TlsSource;
    /** See TlsAcceptorOptions. */
    readonly asksClients?: boolean;
  };
  /** Logs strangers, and counts their cost. */
  readonly strangers: StrangerLog;
  /** What the port is called in the log and in metrics. */
  readonly name: string;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly clock: Pick<Clock, "nowMs">;
  /** See ConnectionKeeperOptions. */
  readonly tickMs?: number;
  /** See ConnectionKeeperOptions. */
  readonly answerMs?: number;
}

/** As long as the API servers of Kubernetes keep one. */
const IDLE_MS = 90_000;

const TCP_KEEPALIVE_MS = 60_000;
/** As HTTP/2 has it: more than the longest token, so that a longer one is refused in words. */
const MOST_HEADER_BYTES = 65_536;

const waiting = new WeakMap<Socket, Set<ServerResponse>>();

/** One port for HTTP/1.1 and HTTP/2: in clear text with prior knowledge, over TLS as the client asks by ALPN. */
export class PolyglotListener {
  readonly #net: net.Server;
  readonly #http1: http.Server;
  readonly #http2: http2.Http2Server;
  readonly #sockets = new Set<net.Socket>();
  // The HTTP/2 server of Node.js 22 does not close its sessions when it is closed.
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
      accounts: options.strangers.accounts,
      limits: {
        maxConnections: options.maxConnections,
        freshMs: options.firstByteMs,
        idleMs: options.idleMs ?? IDLE_MS,
        maxStrangersOfAddress: Number.POSITIVE_INFINITY,
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
          // Nothing is done for those that have left meanwhile.
          if (response.destroyed || request.socket.destroyed) return false;
          options.handler(request, response);
          return true;
        });
      },
    );
    // A server that never listens does not enforce its timeouts on slow requests unless it believes that it does.
    this.#http1.emit("listening");
    this.#keeper.watchHttp1(this.#http1);
    this.#http2 = http2.createServer({ settings: { maxConcurrentStreams: STRANGERS_STREAMS } }, options.handler);
    this.#http2.on("session", (session) => this.#track(session));
    this.#keeper.watchHttp2(this.#http2, true);
    this.#net = net.createServer(
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS },
      (socket) => this.#accept(socket),
    );
    this.#tls = options.tls === undefined ? null : this.#acceptTls(options, options.tls);
  }

  #acceptTls(
    { firstByteMs, metrics, strangers }: PolyglotOptions,
    tls: NonNullable<PolyglotOptions["tls"]>,
  ): TlsAcceptor {
    return new TlsAcceptor({
      ...tls,
      metrics,
      strangers,
      limitMs: firstByteMs,
      protocols: ["h2", "http/1.1"],
      onSecure: (socket, raw) => {
        this.#keeper.secured(socket, raw);
        this.#recognise(socket);
      },
    });
  }

  /** Listen. Rejects when the address is taken or not this machine's. */
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
    // Accepting may fail for a while, for lack of file descriptors; that must not end the process.
    listener.#net.on("error", (error) => listener.#keeper.notAccepted(error));
    return listener;
  }

  get port(): number {
    const address = this.#net.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** End connections without a call, `most` of each kind, for the process has no descriptors left; how many. */
  spare(most: number): number {
    return this.#keeper.spare(most);
  }

  /**
   * Stop accepting connections, send GOAWAY, and let each connection end with its last call. Resolves when the last one
   * has ended.
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

  /** Cut everything that is left. */
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
    // Bad frames have ended their session by then. Without a listener the error would end the process.
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

  /** Wait for as many bytes as tell the protocols apart, then hand the connection over with them. */
  #recognise(socket: net.Socket): void {
    const recognised = () => this.#unrecognised.delete(socket);
    this.#unrecognised.add(socket);
    socket.once("close", recognised);
    recogniseOpening(socket, this.#firstByteMs, (opening) => {
      recognised();
      // Over TLS the two have agreed on it already; the wait is only for the silent.
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
 * Have a response of HTTP/1.1 close with its connection. Node.js closes only the one that is being written: those of
 * requests that were sent behind it without waiting would stay open for good, with all that is counted until they
 * close.
 */
function closeWithSocket({ socket }: IncomingMessage, response: ServerResponse): void {
  // It is the one that is written now.
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
