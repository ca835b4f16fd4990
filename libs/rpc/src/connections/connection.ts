import type http from "node:http";
import http2 from "node:http2";
import type net from "node:net";
import type { HttpRequest } from "../calls/http-handler.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { TableEntry } from "./connection-table.ts";
import type { FloodBudget, Nuisance } from "./flood-budget.ts";

/** Receives what happens to connections. */
export interface ConnectionOwner {
  /** The socket is gone. */
  gone(connection: Connection): void;
  /** A session of HTTP/2 has begun. */
  sessionBegan(connection: Connection): void;
  /** The peer's first settings have come. */
  settled(connection: Connection): void;
  callBegan(connection: Connection): void;
  callEnded(connection: Connection): void;
  /** The peer did something that honest peers do rarely. */
  nuisance(connection: Connection, nuisance: Nuisance): void;
}

/**
 * Most streams of a connection whose callers are all strangers: more of them in one packet are refused before they cost
 * anything.
 */
export const STRANGERS_STREAMS = 100;
/**
 * Most streams once a known caller has called. A client with more opens another connection; to end all of one at once
 * takes some 50 ms.
 */
const KNOWN_STREAMS = 1_000;
/** Most streams between replicas: all watches that one serves for another share a connection. */
const REPLICAS_STREAMS = 10_000;

/**
 * What is kept of a connection. There may be a hundred thousand: a field here is a megabyte. Its listeners are shared
 * by all.
 */
export class Connection extends TableEntry {
  readonly owner: ConnectionOwner;
  /** As it was accepted: under TLS, what carries the encrypted bytes. */
  readonly socket: net.Socket;
  session: http2.ServerHttp2Session | null = null;
  /** Calls under way. */
  calls = 0;
  /** When a ping was sent that is not answered; 0 for none. */
  askedAtMs = 0;
  /** When the peer last showed that it lives. */
  provedAtMs = 0;
  /** Since when the session is known to have ended; 0 while it has not. */
  endingAtMs = 0;
  hasSettings = false;
  /** Charged to its address if it ends without a single call. */
  cost = 0;
  /** How many streams it was allowed because of who called on it; 0 while all its callers are strangers. */
  grantedStreams = 0;
  /**
   * Whether it is exempt from charges: an authenticated caller uses it, it comes from a trusted proxy, or its port has
   * no accounting.
   */
  isTrusted = false;
  /** Whether it still has to wait before it is served. */
  isWaiting = true;
  /** Only of those that have been some nuisance. */
  budget: FloodBudget | null = null;

  /** @param address what counts as one address. */
  constructor(owner: ConnectionOwner, socket: net.Socket, address: string) {
    super(address);
    this.owner = owner;
    this.socket = socket;
  }
}

/** HOST:PORT of the other end, as grpc-js writes it. */
export function grpcPeerOf({ remoteAddress, remotePort }: net.Socket): string {
  return `${remoteAddress}:${remotePort}`;
}

const CONNECTION = Symbol("connection");

type Held = { [CONNECTION]?: Connection };

/** Note to which connection a socket, a session or a call belongs. */
export function hold(thing: object, connection: Connection): void {
  (thing as Held)[CONNECTION] = connection;
}

/**
 * To which connection a socket, a session or a call belongs; undefined when it was not accepted by a ConnectionKeeper.
 */
export function held(thing: object | undefined): Connection | undefined {
  return thing === undefined ? undefined : (thing as Held)[CONNECTION];
}

/** On which connection a request came; undefined when that has ended. */
export function connectionOf(request: http.IncomingMessage | http2.Http2ServerRequest): Connection | undefined {
  // Where it has ended, not even its socket can be asked for.
  return held("stream" in request ? request.stream.session : request.socket);
}

/** Begin to look after a connection. */
export function watchSocket(socket: net.Socket, connection: Connection): void {
  hold(socket, connection);
  socket.on("close", onSocketClose);
}

/**
 * Tell the owners of connections of the sessions and calls of a server, and have so many of those calls begin in one
 * turn of the event loop. To be called once the server has its listeners: what their owners end is never seen by them.
 *
 * @param countsSettings whether owners see settings, for which Node.js keeps some 300 bytes a session.
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
    // Node.js announces every stream of a packet, even after the session was destroyed because of an earlier one.
    if (session === undefined || session.destroyed) return;
    const connection = held(session);
    if (connection !== undefined) {
      hold(stream, connection);
      stream.on("close", onStreamClose);
      connection.owner.callBegan(connection);
    }
    loopBudget.run(connection?.address ?? "", () => {
      // A stream that its peer has reset is closed before it is destroyed, and respond() throws on it.
      if (stream.destroyed || stream.closed) return false;
      stream.off("error", ignore);
      const hasEnded = stream.readableEnded;
      for (const serve of listeners) serve.call(server, stream, ...rest);
      // Node.js emits the end of an empty body without a reader. If that happened while the stream was queued, its
      // handlers missed it.
      if (hasEnded) stream.emit("end");
      return true;
    });
  });
}

type StreamListener = (stream: http2.ServerHttp2Stream, ...rest: unknown[]) => void;

/**
 * Node.js creates an error for every stream that ends with its session. Capturing their unused stack traces is half of
 * the cost of ending a session with a thousand streams.
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

/** For a stream that fails before it is served. */
function ignore(): void {}

/**
 * V8 keeps the receivers of an error's frames until its stack is first read. Among them is the native session, which
 * keeps settings that the peer has not acknowledged, which keep the session, its socket and this error: a cycle through
 * native memory that is never collected, 20 KB a connection.
 */
function releaseFrames(error: Error): void {
  void error.stack;
}

/** The same for a server of HTTP/1.1, whose requests are StoppableRequests. */
export function watchHttp1(server: http.Server): void {
  server.on("request", ({ socket }: http.IncomingMessage, response: http.ServerResponse) => {
    const connection = held(socket);
    if (connection === undefined) return;
    hold(response, connection);
    response.on("close", onResponseClose);
    // Hardly any client sends one request behind the other, and all that came are kept until they are answered.
    if (connection.calls > 0) connection.owner.nuisance(connection, "pipelined");
    connection.owner.callBegan(connection);
    if (connection.socket.destroyed) closeWithoutStacks(socket);
  });
}

/**
 * Node.js creates an error for every pipelined request that is aborted. Capturing their unused stack traces dominates
 * the cost of closing the socket.
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

// Each is one function for all connections, with what it listens to as `this`: a closure a connection would cost more
// than all that is kept of it.

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
 * Trust a connection on which a known caller or a replica has called: it may have more streams, for many watches, and
 * does not suffer for what strangers of its address do.
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
