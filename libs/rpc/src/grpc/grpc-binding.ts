import { once } from "node:events";
import type http2 from "node:http2";
import net from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";
import { refuse } from "@rollcall/errors";
import type { TlsSource } from "@rollcall/identity";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import { closeAnswered } from "../calls/http-handler.ts";
import type { ConnectionTimes } from "../connect/server-options.ts";
import { CallCarriers } from "../connections/call-carriers.ts";
import { ConnectionKeeper } from "../connections/connection-keeper.ts";
import { handToHttp2 } from "../connections/hand-over.ts";
import { TlsAcceptor } from "../connections/tls-acceptor.ts";
import type { StrangerLog } from "../limits/stranger-log.ts";
import { FrameCall, type FrameMethod } from "./frame-call.ts";
import { answerWithStatus } from "./grpc-envelope.ts";
import { toGrpcStatus } from "./grpc-error.ts";

export interface BindingOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** In clear text when absent. */
  readonly tls?: TlsSource;
  readonly name?: string;
  readonly maxConnections?: number;
  readonly maxStrangersOfAddress?: number;
  readonly connectionTimes?: ConnectionTimes;
  readonly log: Logger;
  readonly strangers: StrangerLog;
  readonly metrics: MetricsRegistry;
  readonly clock: Pick<Clock, "nowMs">;
  /** Methods whose calls are not left to grpc-js, by their paths. */
  readonly frames: ReadonlyMap<string, FrameMethod<unknown>>;
}

/** A port that a grpc-js server has taken. */
export interface GrpcBinding {
  readonly port: number;
  readonly keeper: ConnectionKeeper;
  /** See GrpcServer.explain. */
  explain(peer: string, bytes: number): void;
  /** Send GOAWAY, refuse connections, and cut what is left after `graceMs`. */
  drain(graceMs: number): void;
}

/**
 * A peer from which nothing came for so long is asked by the kernel whether it lives, ten times in ten seconds. A peer
 * that beats is never asked, and no process is woken for it, as it would be by HTTP/2's pings.
 */
const PEER_SILENCE_MS = 30_000;
/** How long the first bytes and the handshake of a connection may take. */
const HANDSHAKE_MS = 10_000;
/** An agent opens its stream at once; health checks may call again and again. */
const IDLE_MS = 30_000;
/**
 * A stranger with a call is asked for its Hello within 10 s, and waits for its answer; one with other calls
 * has to make room then.
 */
const SPARE_BUSY_MS = 30_000;
const DEFAULT_MAX_CONNECTIONS = 65_536;
/**
 * A thousand agents behind one address come back at once, and a thousand more may be a second late with their Hello.
 */
const DEFAULT_MAX_STRANGERS = 2_048;

type StreamListener = (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, ...rest: unknown[]) => void;

/**
 * Bind a grpc-js server. We listen ourselves and hand it connections: so that over TLS these ports behave like all
 * others with new certificates, clear text and strangers, none of which grpc-js tells of, and that the kernel asks
 * after peers that fell silent.
 */
export async function bindGrpc(server: Server, options: BindingOptions): Promise<GrpcBinding> {
  const { host, port } = options;
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const keeper = new ConnectionKeeper({
    name: "agents",
    ...options,
    ...options.connectionTimes,
    accounts: options.strangers.accounts,
    limits: {
      maxConnections: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
      maxStrangersOfAddress: options.maxStrangersOfAddress ?? DEFAULT_MAX_STRANGERS,
      freshMs: HANDSHAKE_MS,
      idleMs: options.connectionTimes?.idleMs ?? IDLE_MS,
      spareBusyMs: SPARE_BUSY_MS,
    },
  });
  const inner = innerServer(server);
  const inject = (socket: net.Socket) => handToHttp2(inner, socket, () => injector.injectConnection(socket));
  const carriers = new CallCarriers();
  serveStreams(inner, options.frames, carriers);
  // A flood of settings ends at nghttp2's own limit, or by its bytes: counting them here would cost memory for each
  // agent.
  keeper.watchHttp2(inner, false);
  const acceptor = options.tls === undefined ? null : acceptTls(options.tls, options, keeper, inject);
  const listener = net.createServer(
    { noDelay: true, keepAlive: true, keepAliveInitialDelay: PEER_SILENCE_MS },
    (socket) => {
      // Unheard, an error before the session has taken over would end the process.
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
  // Accepting may fail for a while, for lack of file descriptors; that must not end the process.
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

/** grpc-js keeps to itself the HTTP/2 server that it feeds, whose sessions have to be looked after. */
function innerServer(server: Server): http2.Http2Server {
  // biome-ignore lint/complexity/useLiteralKeys: the compiler allows no other access, and fails without such a field.
  const [inner]: http2.Http2Server[] = [...server["http2Servers"].keys()];
  if (inner === undefined) throw new Error("this version of grpc-js has no HTTP/2 server to look at");
  return inner;
}

function destroyIt(this: net.Socket): void {
  this.destroy();
}

function acceptTls(
  source: TlsSource,
  { strangers, metrics }: BindingOptions,
  keeper: ConnectionKeeper,
  inject: (socket: net.Socket) => void,
): TlsAcceptor {
  return new TlsAcceptor({
    source,
    strangers,
    metrics,
    limitMs: HANDSHAKE_MS,
    protocols: ["h2"],
    onSecure: (socket, raw) => {
      keeper.secured(socket, raw);
      // Without ALPN it may be anything; all that speak gRPC have it.
      if (socket.alpnProtocol === "h2") inject(socket);
      else socket.destroy();
    },
  });
}

/**
 * Serve the calls of long streams on HTTP/2 itself, and all others by the grpc-js server. Calls whose messages are
 * compressed are refused with COMPRESSION_NOT_SUPPORTED and the encodings that there are, as gRPC's specification has
 * it: grpc-js itself unpacks whatever comes, as many at a time as come, and messages of a few dozen bytes have nothing
 * to gain.
 */
function serveStreams(server: http2.Http2Server, frames: BindingOptions["frames"], carriers: CallCarriers): void {
  const listeners = server.listeners("stream") as StreamListener[];
  server.removeAllListeners("stream");
  server.on("stream", (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, ...rest: unknown[]) => {
    const { "grpc-encoding": encoding = "identity", "content-type": type = "", ":path": path = "" } = headers;
    const method = frames.get(path);
    if (encoding !== "identity") refuseCompressed(stream);
    // What is no gRPC is answered by grpc-js, whatever its path.
    else if (method !== undefined && type.startsWith("application/grpc")) serveFrames(method, stream, headers);
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
  const message = "messages to this port are not compressed: send them with grpc-encoding identity";
  answerWithStatus(stream, toGrpcStatus(refuse("COMPRESSION_NOT_SUPPORTED", message)));
  closeAnswered(stream);
}
