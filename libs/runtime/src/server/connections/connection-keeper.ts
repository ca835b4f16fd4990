import type http from "node:http";
import http2 from "node:http2";
import type net from "node:net";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logging.ts";
import { gauge, type MetricsRegistry, onScrape } from "../../metrics.ts";
import { type ConnectionLimits, ConnectionTable, TableEntry } from "./connection-table.ts";
import { ConnectionTally, type EndReason } from "./connection-tally.ts";
import { FloodBudget, type Nuisance } from "./flood-budget.ts";

export interface ConnectionKeeperOptions {
  /** What the port is called in the log and in metrics. */
  readonly name: string;
  readonly limits: ConnectionLimits;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly clock: Pick<Clock, "nowMs">;
  /** How often connections are looked at. Default 1 s. */
  readonly tickMs?: number;
  /** How long a peer may take to answer a ping. Default 20 s. */
  readonly answerMs?: number;
}

const TICK_MS = 1_000;
/** As gRPC's own keepalive has it. */
const ANSWER_MS = 20_000;
/** From one answered ping of a connection to the next. */
const PROOF_MS = 30_000;
/** How long the peer of a connection that was ended in order may take to close its side. */
const LINGER_MS = 5_000;
/** All connections are looked at within five ticks; up to so many at each. */
const LOOKED_AT_A_TICK = 2_000;
const TICKS_A_ROUND = 5;
/** Most connections that are ended in one tick for each standing. */
const MOST_ENDED_A_TICK = 2_000;
/** Below these, the bytes of a connection are not worth counting. */
const SMALL_BYTES = 65_536;
const SMALL_BYTES_KNOWN = 4 * 1_048_576;

const CONNECTION = Symbol("connection");

type Held<T> = T & { [CONNECTION]?: Connection };

/** What is kept of a connection. There may be a hundred thousand: a field here is a megabyte. Its listeners are shared by all. */
class Connection extends TableEntry {
  readonly keeper: ConnectionKeeper;
  /** As it was accepted: under TLS, what carries the encrypted bytes. */
  readonly socket: net.Socket;
  session: http2.ServerHttp2Session | null = null;
  /** Calls under way. */
  streams = 0;
  /** When a ping was sent that is not answered; 0 for none. */
  askedAtMs = 0;
  provedAtMs = 0;
  endingAtMs = 0;
  hasSettings = false;
  budget: FloodBudget | null = null;

  constructor(keeper: ConnectionKeeper, socket: net.Socket) {
    super(addressOf(socket));
    this.keeper = keeper;
    this.socket = socket;
  }
}

/** What counts as one address for the limit of strangers. */
function addressOf(socket: net.Socket): string {
  return socket.remoteAddress ?? "";
}

/**
 * The connections of one port, from their acceptance to the end of their socket: counted by the sockets that exist, bounded in number,
 * and ended when they do nothing, answer nothing, or flood. Node.js stops reading from an HTTP/2 connection on which it sent GOAWAY for an error,
 * and so never learns that its peer has closed it; there is no event of it. Hence each connection of a stranger is asked by ping, and one that does not
 * answer is cut. One timer serves all connections.
 */
export class ConnectionKeeper {
  readonly #table: ConnectionTable<Connection>;
  readonly #tally: ConnectionTally;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #answerMs: number;
  readonly #limits: ConnectionLimits;
  readonly #sessions = new Set<Connection>();
  /** Strangers by HOST:PORT, where they can become known. */
  readonly #strangers: Map<string, Connection> | null;
  readonly #timer: NodeJS.Timeout;
  #round: Iterator<Connection> = [][Symbol.iterator]();

  constructor(options: ConnectionKeeperOptions) {
    const { name, limits, clock, metrics, tickMs = TICK_MS, answerMs = ANSWER_MS } = options;
    this.#limits = limits;
    this.#table = new ConnectionTable(limits);
    this.#strangers = Number.isFinite(limits.maxStrangersOfAddress) ? new Map() : null;
    this.#tally = new ConnectionTally(name, options);
    this.#clock = clock;
    this.#answerMs = answerMs;
    this.#timer = setInterval(() => this.#tick(), tickMs).unref();
    this.#measure(name, metrics);
  }

  /** How many connections are open. */
  get size(): number {
    return this.#table.size;
  }

  /** Take a new connection, or destroy it; whether it was taken. */
  accept(socket: net.Socket): boolean {
    const connection = new Connection(this, socket);
    const nowMs = this.#nowMs();
    const admission = this.#table.admit(connection, nowMs);
    if (!admission.ok) {
      this.#tally.add(`refused_${admission.crowd}`, connection.address);
      socket.destroy();
      return false;
    }
    if (admission.shed !== null) this.#cut(admission.shed, "shed");
    hold(socket, connection);
    socket.on("close", onSocketClose);
    this.#strangers?.set(peerOf(socket), connection);
    return true;
  }

  /** Tell that a connection goes on in another socket, which decrypts it. */
  secured(socket: net.Socket, raw: net.Socket): void {
    const connection = held(raw);
    if (connection !== undefined) hold(socket, connection);
  }

  /** Tell that it is known what a connection speaks. */
  recognised(socket: net.Socket): void {
    const connection = held(socket);
    if (connection?.standing === "fresh") this.#move(connection, "idle");
  }

  /** Tell that a stranger has shown who it is; until its last call ends, only that it lives is asked. @param peer HOST:PORT. */
  known(peer: string): void {
    const connection = this.#strangers?.get(peer);
    if (connection === undefined || connection.streams === 0) return;
    this.#strangers?.delete(peer);
    connection.askedAtMs = 0;
    this.#move(connection, "known");
  }

  /** Look after the sessions of a server whose connections were accepted here. */
  watchHttp2(server: http2.Http2Server): void {
    server.on("session", (session: http2.ServerHttp2Session) => {
      const connection = held(session.socket);
      if (connection === undefined) return;
      connection.session = session;
      // It is asked at the next tick.
      connection.provedAtMs = this.#nowMs() - PROOF_MS;
      hold(session, connection);
      session.on("ping", onPing);
      session.on("remoteSettings", onSettings);
      this.#sessions.add(connection);
    });
    server.on("stream", (stream: http2.ServerHttp2Stream) => {
      const connection = stream.session === undefined ? undefined : held(stream.session);
      if (connection === undefined) return;
      hold(stream, connection);
      stream.on("close", onStreamClose);
      connection.budget?.streamOpened();
      this.#begin(connection);
    });
  }

  /** The same for a server of HTTP/1.1. */
  watchHttp1(server: http.Server): void {
    server.on("request", ({ socket }: http.IncomingMessage, response: http.ServerResponse) => {
      const connection = held(socket);
      if (connection === undefined) return;
      hold(response, connection);
      response.on("close", onResponseClose);
      this.#begin(connection);
    });
  }

  /** End connections that do nothing, since the process has no descriptors left; how many. */
  spare(most: number): number {
    const spared = this.#table.spareable(most);
    for (const connection of spared) this.#cut(connection, "out_of_descriptors");
    return spared.length;
  }

  /** Look after nothing any more. */
  close(): void {
    clearInterval(this.#timer);
  }

  /** Of a shared listener: the socket is gone. */
  forget(connection: Connection): void {
    this.#table.remove(connection);
    this.#sessions.delete(connection);
    const peer = peerOf(connection.socket);
    if (this.#strangers?.get(peer) === connection) this.#strangers.delete(peer);
  }

  /** Of a shared listener: the peer's first settings have come. */
  settled(connection: Connection): void {
    connection.hasSettings = true;
    if (connection.standing === "fresh") this.#move(connection, "idle");
  }

  /** Of a shared listener: a call has ended. */
  ended(connection: Connection): void {
    connection.streams -= 1;
    if (connection.streams > 0) return;
    connection.provedAtMs = this.#nowMs();
    this.#move(connection, "idle");
    if (connection.isListed) this.#strangers?.set(peerOf(connection.socket), connection);
  }

  /** Of a shared listener: what nobody needs much of. */
  nuisance(connection: Connection, nuisance: Nuisance): void {
    // What ends takes its calls along.
    if (connection.socket.destroyed || connection.session?.destroyed === true) return;
    connection.budget ??= new FloodBudget();
    if (connection.budget.spend(nuisance, this.#nowMs())) this.#cut(connection, "flood");
  }

  #begin(connection: Connection): void {
    connection.streams += 1;
    if (connection.standing !== "known") this.#move(connection, "busy");
  }

  #move(connection: Connection, standing: TableEntry["standing"]): void {
    this.#table.move(connection, standing, this.#nowMs());
  }

  #tick(): void {
    for (const connection of this.#table.overdue(this.#nowMs(), MOST_ENDED_A_TICK)) {
      this.#endInOrder(connection);
    }
    let left = Math.max(LOOKED_AT_A_TICK, Math.ceil(this.#sessions.size / TICKS_A_ROUND));
    for (left = Math.min(left, this.#sessions.size); left > 0; left -= 1) {
      const next = this.#nextOfRound();
      if (next === undefined) break;
      this.#look(next);
    }
    this.#tally.say();
  }

  /** Sets may change while they are walked through: those that come are found, those that go are not. */
  #nextOfRound(): Connection | undefined {
    let next = this.#round.next();
    if (next.done === true) {
      this.#round = this.#sessions.values();
      next = this.#round.next();
    }
    return next.done === true ? undefined : next.value;
  }

  #look(connection: Connection): void {
    const { session, socket, streams, standing } = connection;
    if (session === null || socket.destroyed) return;
    if (session.destroyed) {
      this.#linger(connection);
      return;
    }
    const nowMs = this.#nowMs();
    const { bytesRead } = socket;
    if (bytesRead > (standing === "known" ? SMALL_BYTES_KNOWN : SMALL_BYTES)) {
      connection.budget ??= new FloodBudget();
      if (connection.budget.look(bytesRead, streams, nowMs)) {
        this.#cut(connection, "flood");
        return;
      }
    }
    if (standing === "known") return;
    if (connection.askedAtMs > 0) this.#await(connection, session, nowMs);
    else if (nowMs - connection.provedAtMs >= PROOF_MS) this.#ask(connection, session, nowMs);
  }

  #ask(connection: Connection, session: http2.ServerHttp2Session, nowMs: number): void {
    connection.askedAtMs = nowMs;
    const onAnswer = (error: Error | null) => {
      // A session that ends cancels what is not answered.
      if (error !== null) return;
      connection.askedAtMs = 0;
      connection.provedAtMs = this.#nowMs();
    };
    // Node.js sends no ping on a session that takes no more calls. Settings are acknowledged just as well.
    if (session.closed) session.settings({}, onAnswer);
    else if (!session.ping(onAnswer)) this.#cut(connection, "unresponsive");
  }

  #await(connection: Connection, session: http2.ServerHttp2Session, nowMs: number): void {
    const isLate = nowMs - connection.askedAtMs >= this.#answerMs;
    // With no call under way there is nothing that a ping could wait behind: one that was not even sent never will be.
    const isStuck = connection.streams === 0 && (session.state.outboundQueueSize ?? 0) > 0;
    if (isLate || isStuck) this.#cut(connection, "unresponsive");
  }

  #endInOrder(connection: Connection): void {
    const { session, standing } = connection;
    if (session === null || standing === "fresh") {
      this.#cut(connection, standing === "fresh" ? "silent" : "idle");
    } else if (connection.endingAtMs === 0) {
      connection.endingAtMs = this.#nowMs();
      this.#tally.add("idle", connection.address);
      session.close();
    } else this.#linger(connection);
  }

  /** A socket that was ended in order is still open until its peer has closed it too. */
  #linger(connection: Connection): void {
    const nowMs = this.#nowMs();
    if (connection.endingAtMs === 0) connection.endingAtMs = nowMs;
    else if (nowMs - connection.endingAtMs >= LINGER_MS) connection.socket.destroy();
  }

  #cut(connection: Connection, reason: EndReason): void {
    this.#tally.add(reason, connection.address);
    const { session, socket } = connection;
    if (reason === "flood" && session !== null) {
      // It is told why; the socket follows by itself, or at the next looks.
      session.destroy(new Error("the peer floods"), http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    session?.destroy();
    socket.destroy();
  }

  /** In whole milliseconds, which take no memory of their own, and never 0. */
  #nowMs(): number {
    return Math.ceil(this.#clock.nowMs()) + 1;
  }

  #measure(name: string, metrics: MetricsRegistry): void {
    const open = gauge(metrics, {
      name: "rollcall_connections",
      help: "Connections of a port: strangers have not shown who they are, or need not.",
      labelNames: ["port", "kind"],
    });
    const limit = gauge(metrics, {
      name: "rollcall_connections_limit",
      help: "Most connections that a port takes at a time.",
      labelNames: ["port"],
    });
    limit.set({ port: name }, this.#limits.maxConnections);
    onScrape(metrics, () => {
      const { size, strangers } = this.#table;
      open.set({ port: name, kind: "stranger" }, strangers);
      open.set({ port: name, kind: "known" }, size - strangers);
    });
  }
}

function hold(thing: object, connection: Connection): void {
  (thing as Held<object>)[CONNECTION] = connection;
}

function held(thing: object): Connection | undefined {
  return (thing as Held<object>)[CONNECTION];
}

/** As grpc-js writes it. */
function peerOf({ remoteAddress, remotePort }: net.Socket): string {
  return `${remoteAddress}:${remotePort}`;
}

// Each is one function for all connections, with what it listens to as `this`: a closure a connection would cost more than all that is kept of it.

function onSocketClose(this: net.Socket): void {
  const connection = held(this);
  connection?.keeper.forget(connection);
}

function onPing(this: http2.Http2Session): void {
  const connection = held(this);
  connection?.keeper.nuisance(connection, "ping");
}

function onSettings(this: http2.Http2Session): void {
  const connection = held(this);
  if (connection === undefined) return;
  if (connection.hasSettings) connection.keeper.nuisance(connection, "settings");
  else connection.keeper.settled(connection);
}

function onStreamClose(this: http2.Http2Stream): void {
  const connection = held(this);
  if (connection === undefined) return;
  if (this.rstCode !== http2.constants.NGHTTP2_NO_ERROR)
    connection.keeper.nuisance(connection, "reset");
  connection.keeper.ended(connection);
}

function onResponseClose(this: http.ServerResponse): void {
  const connection = held(this);
  connection?.keeper.ended(connection);
}
