import type http from "node:http";
import http2 from "node:http2";
import type net from "node:net";
import type { HttpRequest } from "../calls/http-handler.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { TableEntry } from "./connection-table.ts";
import type { FloodBudget, Nuisance } from "./flood-budget.ts";

/** Receives the events of connections. */
export interface ConnectionOwner {
  /** The socket has closed. */
  gone(connection: Connection): void;
  /** An HTTP/2 session has begun. */
  sessionBegan(connection: Connection): void;
  /** The peer's first settings have arrived. */
  settled(connection: Connection): void;
  callBegan(connection: Connection): void;
  callEnded(connection: Connection): void;
  /** The caller is identified. The connection becomes anonymous again when its last call has ended. */
  identified(connection: Connection): void;
  /** The peer did something that well-behaved peers rarely do. */
  nuisance(connection: Connection, nuisance: Nuisance): void;
}

/**
 * Maximum number of streams on a connection whose callers are all anonymous. If a packet opens more, the excess streams
 * are refused before they cost anything.
 */
export const ANONYMOUS_STREAMS = 100;
/**
 * Maximum number of streams on a connection once a known caller has made a call. A client that needs more streams opens
 * another connection. Ending all streams of one connection together takes about 50 ms.
 */
const KNOWN_STREAMS = 1_000;
/**
 * Maximum number of streams on a connection between replicas. The limit is high, because all watches that one replica
 * serves for another share a connection.
 */
const REPLICAS_STREAMS = 10_000;

/**
 * The state of a connection. A process can have a hundred thousand connections, so each field costs about a megabyte.
 * All connections share their listeners.
 */
export class Connection extends TableEntry {
  readonly owner: ConnectionOwner;
  /** The accepted socket. Under TLS, it carries the encrypted bytes. */
  readonly socket: net.Socket;
  session: http2.ServerHttp2Session | null = null;
  /** The number of calls in progress. */
  calls = 0;
  /** When the unanswered ping was sent; 0 for none. */
  askedAtMs = 0;
  /** When the peer last proved that it is alive. */
  provedAtMs = 0;
  /** When the checks found that the session had ended; 0 before that. */
  endingAtMs = 0;
  hasSettings = false;
  /** What to charge to the address if the connection ends without any call. */
  cost = 0;
  /** The raised maximum number of streams after a call by an identified caller; 0 while all callers are anonymous. */
  grantedStreams = 0;
  /**
   * Whether the connection is exempt from charges: an authenticated caller uses it, it comes from a trusted proxy, or
   * its port has no accounting.
   */
  isTrusted = false;
  /** Whether the connection is still waiting to be served. */
  isWaiting = true;
  /** The budget for nuisances and unexplained bytes; null until it is needed. */
  budget: FloodBudget | null = null;

  /** @param address the group of addresses that counts as one address. */
  constructor(owner: ConnectionOwner, socket: net.Socket, address: string) {
    super(address);
    this.owner = owner;
    this.socket = socket;
  }
}

const CONNECTION = Symbol("connection");

type Held = { [CONNECTION]?: Connection };

/** Associate a socket, a session or a call with its connection. */
export function hold(thing: object, connection: Connection): void {
  (thing as Held)[CONNECTION] = connection;
}

/** Get the connection that a socket, a session or a call belongs to; undefined if no ConnectionKeeper accepted it. */
export function held(thing: object | undefined): Connection | undefined {
  return thing === undefined ? undefined : (thing as Held)[CONNECTION];
}

/** Get the connection that a request arrived on; undefined if the connection has ended. */
export function connectionOf(request: http.IncomingMessage | http2.Http2ServerRequest): Connection | undefined {
  // Use the session, because properties of its socket cannot be read once the session has ended.
  return held("stream" in request ? request.stream.session : request.socket);
}

/** Begin to watch a connection. */
export function watchSocket(socket: net.Socket, connection: Connection): void {
  hold(socket, connection);
  socket.on("close", onSocketClose);
}

/**
 * Report a server's sessions and calls to the owners of their connections, and limit how many of the calls start in one
 * iteration of the event loop. Must be called after the server's listeners are registered, so that they do not see the
 * calls that owners end.
 *
 * @param countsSettings whether to report settings to owners, which costs about 300 bytes per session in Node.js.
 */
export function watchHttp2(server: http2.Http2Server, countsSettings: boolean): void {
  server.on("session", (session: http2.ServerHttp2Session) => {
    const connection = held(session.socket);
    if (connection === undefined) return;
    hold(session, connection);
    connection.session = session;
    session.destroy = destroyWithoutStacks;
    session.on("ping", onPing);
    if (countsSettings) session.on("remoteSettings", onSettings);
    connection.owner.sessionBegan(connection);
  });
  server.on("sessionError", releaseFrames);
  const listeners = server.listeners("stream") as StreamListener[];
  server.removeAllListeners("stream");
  server.on("stream", (stream: http2.ServerHttp2Stream, ...rest: unknown[]) => {
    stream.on("error", ignore);
    const { session } = stream;
    // Ignore a stream of a destroyed session: Node.js announces every stream of a packet, even if an earlier stream in
    // the packet caused the session to be destroyed.
    if (session === undefined || session.destroyed) return;
    const connection = held(session);
    if (connection !== undefined) {
      hold(stream, connection);
      stream.on("close", onStreamClose);
      connection.owner.callBegan(connection);
    }
    loopBudget.run(connection?.address ?? "", () => {
      // Check `closed` too: a stream that its peer has reset is closed before it is destroyed, and respond() throws on
      // a closed stream.
      if (stream.destroyed || stream.closed) return false;
      stream.off("error", ignore);
      const hasEnded = stream.readableEnded;
      for (const serve of listeners) serve.call(server, stream, ...rest);
      // Emit the end again, because Node.js emits the end of an empty body even without a reader. If that happened
      // while the stream was queued, the handlers missed it.
      if (hasEnded) stream.emit("end");
      return true;
    });
  });
}

type StreamListener = (stream: http2.ServerHttp2Stream, ...rest: unknown[]) => void;

/**
 * Destroy a session without stack traces. Node.js creates an error for every stream that ends with its session, and
 * nothing uses the stack traces. Capturing them is half of the cost of ending a session with a thousand streams.
 */
function destroyWithoutStacks(
  this: http2.ServerHttp2Session,
  ...args: Parameters<http2.ServerHttp2Session["destroy"]>
): void {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    Object.getPrototypeOf(this).destroy.apply(this, args);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Ignores the error of a stream that fails before it is served. */
function ignore(): void {}

/**
 * Read the stack of an error, because V8 keeps the receivers of the stack's frames until the stack is read. One
 * receiver is the native session. It keeps unacknowledged settings, which keep the session, its socket and this error.
 * Such a cycle through native memory is never collected, and takes 20 KB per connection.
 */
function releaseFrames(error: Error): void {
  void error.stack;
}

/** Like watchHttp2(), for an HTTP/1.1 server. Its requests must be StoppableRequests. */
export function watchHttp1(server: http.Server): void {
  server.on("request", ({ socket }: http.IncomingMessage, response: http.ServerResponse) => {
    const connection = held(socket);
    if (connection === undefined) return;
    hold(response, connection);
    response.on("close", onResponseClose);
    // Report pipelining as a nuisance: hardly any client does it, and all pipelined requests are kept until they are
    // answered.
    if (connection.calls > 0) connection.owner.nuisance(connection, "pipelined");
    connection.owner.callBegan(connection);
    if (connection.socket.destroyed) closeWithoutStacks(socket);
  });
}

/**
 * Close a socket without stack traces. Node.js creates an error for every pipelined request that is aborted, and
 * nothing uses the stack traces. Capturing them is most of the cost of closing the socket.
 */
function closeWithoutStacks(socket: net.Socket): void {
  const { stackTraceLimit } = Error;
  socket.prependOnceListener("close", () => {
    Error.stackTraceLimit = 0;
  });
  socket.once("close", () => {
    Error.stackTraceLimit = stackTraceLimit;
  });
}

// All connections share these listeners, whose `this` is the socket or session: a closure per connection would need
// more memory than the connection's whole state.

function onSocketClose(this: net.Socket): void {
  const connection = held(this);
  connection?.owner.gone(connection);
}

function onPing(this: http2.Http2Session): void {
  const connection = held(this);
  connection?.owner.nuisance(connection, "ping");
}

function onSettings(this: http2.Http2Session): void {
  const connection = held(this);
  if (connection === undefined) return;
  if (connection.hasSettings) connection.owner.nuisance(connection, "settings");
  connection.hasSettings = true;
  connection.owner.settled(connection);
}

function onStreamClose(this: http2.Http2Stream): void {
  const connection = held(this);
  if (connection === undefined) return;
  const isReset = this.rstCode !== http2.constants.NGHTTP2_NO_ERROR;
  if (isReset) connection.owner.nuisance(connection, "reset");
  connection.owner.callEnded(connection);
}

function onResponseClose(this: http.ServerResponse): void {
  const connection = held(this);
  connection?.owner.callEnded(connection);
}

/**
 * Trust a connection on which a known caller or a replica has made a call. The connection can have more streams, for
 * many watches, and is not charged for what anonymous clients of its address do.
 */
export function trustConnection(request: HttpRequest, by: "known" | "replica"): void {
  const connection = connectionOf(request);
  const streams = by === "replica" ? REPLICAS_STREAMS : KNOWN_STREAMS;
  if (connection === undefined || connection.grantedStreams >= streams) return;
  connection.grantedStreams = streams;
  connection.isTrusted = true;
  const { session } = connection;
  if (session?.destroyed === false) session.settings({ maxConcurrentStreams: streams });
}
