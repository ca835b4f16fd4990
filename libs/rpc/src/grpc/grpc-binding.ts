import { once } from "node:events";
import type http2 from "node:http2";
import net from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";
import { refuse } from "@rollcall/errors";
import type { TlsSource } from "@rollcall/identity";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import { closeAnswered } from "../calls/http-handler.ts";
import { CallCarriers } from "../connections/call-carriers.ts";
import { ConnectionKeeper } from "../connections/connection-keeper.ts";
import { handToHttp2 } from "../connections/hand-over.ts";
import { TlsAcceptor } from "../connections/tls-acceptor.ts";
import type { AnonymousLog } from "../limits/anonymous-log.ts";
import type { ConnectionTimes } from "../server-options.ts";
import { FrameCall, type FrameMethod } from "./frame-call.ts";
import { answerWithStatus } from "./grpc-envelope.ts";
import { toGrpcStatus } from "./grpc-error.ts";

export interface BindingOptions {
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
  /** Get the method that a path names, unless grpc-js serves it. Then it returns null. */
  methodAt(path: string): FrameMethod<unknown> | null;
}

/** A port bound for a grpc-js server. */
export interface GrpcBinding {
  readonly port: number;
  readonly keeper: ConnectionKeeper;
  /** See GrpcServer.explain. */
  explain(peer: string, bytes: number): void;
  /** Refuse new connections, send GOAWAY, and cut remaining calls after `graceMs`. */
  drain(graceMs: number): void;
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

type StreamListener = (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, ...rest: unknown[]) => void;

/**
 * Bind a grpc-js server. The server does not listen itself: this function listens and hands connections over to the
 * server. Over TLS, the server's ports therefore handle new certificates, clear text and anonymous clients like all
 * other ports; grpc-js reports none of these. This also lets the kernel probe peers that have fallen silent.
 */
export async function bindGrpc(server: Server, options: BindingOptions): Promise<GrpcBinding> {
  const { host, port } = options;
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const keeper = new ConnectionKeeper({
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
  const inner = innerServer(server);
  const inject = (socket: net.Socket) => handToHttp2(inner, socket, () => injector.injectConnection(socket));
  const carriers = new CallCarriers();
  serveStreams(inner, options.methodAt, carriers);
  // Do not count SETTINGS frames, because that would cost memory for each agent. The limit of nghttp2 or the limit of
  // bytes stops a flood of them.
  keeper.watchHttp2(inner, false);
  const acceptor = options.tls === undefined ? null : acceptTls(options.tls, options, keeper, inject);
  const listener = net.createServer(
    { noDelay: true, keepAlive: true, keepAliveInitialDelay: PEER_SILENCE_MS },
    (socket) => {
      // Destroy the socket on an error. Before the session listens for errors, an unhandled error event would end the
      // process.
      socket.on("error", destroyIt);
      keeper.accept(socket, () => {
        if (acceptor === null) inject(socket);
        else acceptor.accept(socket);
      });
    },
  );
  listener.listen(port, host);
  try {
    await once(listener, "listening");
  } catch (error) {
    acceptor?.close();
    keeper.close();
    injector.destroy();
    throw error;
  }
  // Report the error instead of letting it end the process: accepting connections can fail for a while, for lack of
  // file descriptors.
  listener.on("error", (error) => keeper.notAccepted(error));
  const address = listener.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    keeper,
    explain: (peer, bytes) => carriers.find(peer)?.budget?.explain(bytes),
    drain: (graceMs) => {
      listener.close();
      acceptor?.close();
      keeper.refuseNewcomers();
      injector.drain(graceMs);
    },
  };
}

/** Get the HTTP/2 server that grpc-js hides, to watch its sessions. */
function innerServer(server: Server): http2.Http2Server {
  // biome-ignore lint/complexity/useLiteralKeys: the compiler allows no other access, and fails without such a field.
  const [inner]: http2.Http2Server[] = [...server["http2Servers"].keys()];
  if (inner === undefined) throw new Error("this version of grpc-js has no accessible HTTP/2 server");
  return inner;
}

function destroyIt(this: net.Socket): void {
  this.destroy();
}

function acceptTls(
  source: TlsSource,
  { anonymousClients, metrics }: BindingOptions,
  keeper: ConnectionKeeper,
  inject: (socket: net.Socket) => void,
): TlsAcceptor {
  return new TlsAcceptor({
    source,
    anonymousClients,
    metrics,
    limitMs: HANDSHAKE_MS,
    protocols: ["h2"],
    onSecure: (socket, raw) => {
      keeper.secured(socket, raw);
      // Require ALPN, which all gRPC clients use. Without ALPN, the client could speak any protocol.
      if (socket.alpnProtocol === "h2") inject(socket);
      else socket.destroy();
    },
  });
}

/**
 * Serve the calls of long streams directly on HTTP/2, and all others with the grpc-js server.
 *
 * Calls with compressed messages are refused with COMPRESSION_NOT_SUPPORTED and the supported encodings, as gRPC's
 * specification requires. grpc-js itself would decompress everything that it receives, without a limit on concurrency.
 * Compression also would not make messages of a few dozen bytes smaller.
 */
function serveStreams(server: http2.Http2Server, methodAt: BindingOptions["methodAt"], carriers: CallCarriers): void {
  const listeners = server.listeners("stream") as StreamListener[];
  server.removeAllListeners("stream");
  server.on("stream", (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, ...rest: unknown[]) => {
    const { "grpc-encoding": encoding = "identity", "content-type": type = "", ":path": path = "" } = headers;
    const method = methodAt(path);
    if (encoding !== "identity") refuseCompressed(stream);
    // Leave requests that are not gRPC to grpc-js, which answers them on any path.
    else if (method !== null && type.startsWith("application/grpc")) serveFrames(method, stream, headers);
    else {
      carriers.add(stream);
      for (const serve of listeners) serve.call(server, stream, headers, ...rest);
    }
  });
}

function serveFrames(
  method: FrameMethod<unknown>,
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
): void {
  if (headers[":method"] === "POST") FrameCall.open(method, stream, headers);
  else stream.on("error", () => {}).respond({ ":status": 405, allow: "POST" }, { endStream: true });
}

function refuseCompressed(stream: http2.ServerHttp2Stream): void {
  stream.on("error", () => {});
  const message = "this port does not accept compressed messages: send them with grpc-encoding identity";
  answerWithStatus(stream, toGrpcStatus(refuse("COMPRESSION_NOT_SUPPORTED", message)));
  closeAnswered(stream);
}
