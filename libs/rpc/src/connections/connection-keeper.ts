import http2 from "node:http2";
import type net from "node:net";
import { type Clock, errorCode, gauge, type Logger, type MetricsRegistry, onScrape } from "@rollcall/process";
import type { AnonymousAccounts } from "../limits/anonymous-log.ts";
import { AddressKeeper } from "./address-keeper.ts";
import { Connection, type ConnectionOwner, held, hold, watchSocket } from "./connection.ts";
import { type ConnectionLimits, ConnectionTable, type Standing } from "./connection-table.ts";
import { ConnectionTally, type EndReason } from "./connection-tally.ts";
import { FloodBudget, NUISANCE_COSTS, type Nuisance } from "./flood-budget.ts";
import { SessionChecks } from "./session-checks.ts";

export interface ConnectionKeeperOptions {
  /** The port's name in the log and in metrics. */
  readonly name: string;
  readonly limits: ConnectionLimits;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly clock: Pick<Clock, "nowMs">;
  /** The costs per address, which all ports share. Null turns off accounting and waiting. */
  readonly accounts: AnonymousAccounts | null;
  /** How often to check connections. Default 250 ms. */
  readonly tickMs?: number;
  /** How long a peer can take to answer a ping. Default 20 s. */
  readonly answerMs?: number;
  /** How often to ping connections of identified callers. Default 5 min. */
  readonly knownEveryMs?: number;
}

const TICK_MS = 250;
/** How long a peer can take to answer a ping, in milliseconds. gRPC's own keepalive has the same default. */
const ANSWER_MS = 20_000;
/**
 * How often to ping connections of identified callers, in milliseconds. The pings find machines that lost power behind
 * a proxy whose kernel still acknowledges TCP keepalives.
 */
const KNOWN_EVERY_MS = 300_000;
/** Maximum number of connections closed per tick, for each standing. */
const MOST_ENDED_A_TICK = 2_000;
/** What to charge for a connection without any call, and what to charge in addition for its TLS handshake. */
const CONNECTION_COST = 5;
const HANDSHAKE_COST = 10;
/** The maximum debt from connections. A debt of this size is paid off within a second. */
const CONNECTIONS_MOST_OWED = 2_000;
/** What to charge for a flood, in addition to the charges for its counted events. */
const FLOOD_COST = 1_000;

/**
 * Maximum number of bytes to read of a waiting connection. The rest stays in the kernel, because waiting connections
 * are not charged. Few clients send more before they get a response.
 */
const MOST_BYTES = 8_192;
/** Maximum number of reads of a waiting connection, because a packet may have only one byte. */
const MOST_CHUNKS = 16;

/**
 * The connections of one port, from acceptance until their socket closes. Their number is limited. A connection is
 * closed if it does nothing, does not respond, or floods.
 *
 * After Node.js has sent GOAWAY for an error on an HTTP/2 connection, it stops reading from the connection. From then
 * on it never notices that the peer has closed the connection, and emits no event. For this reason each anonymous
 * connection is pinged, and cut if it does not answer. No connection has its own timer. See docs/decisions/0024.
 */
export class ConnectionKeeper {
  readonly #table: ConnectionTable<Connection>;
  readonly #tally: ConnectionTally;
  readonly #checks: SessionChecks;
  readonly #owner: ConnectionOwner;
  readonly #clock: Pick<Clock, "nowMs">;
  /** Whether new connections are served without waiting, because their callers are soon identified. */
  readonly #servesAtOnce: boolean;
  readonly #addresses: AddressKeeper;
  /** Connections that will be closed for flooding before the next iteration of the event loop. */
  readonly #flooding = new Set<Connection>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: ConnectionKeeperOptions) {
    const { limits, clock, tickMs = TICK_MS, answerMs = ANSWER_MS, knownEveryMs = KNOWN_EVERY_MS } = options;
    this.#table = new ConnectionTable(limits);
    this.#servesAtOnce = Number.isFinite(limits.maxAnonymousOfAddress);
    this.#tally = new ConnectionTally(options.name, options);
    this.#clock = clock;
    const nowMs = () => this.#nowMs();
    this.#addresses = new AddressKeeper({
      accounts: options.accounts,
      nowMs,
      anonymousOf: (address) => this.#table.anonymousOf(address),
    });
    this.#checks = new SessionChecks({
      answerMs,
      knownEveryMs,
      nowMs,
      cut: (connection, reason) => this.#cut(connection, reason),
      sentMuch: ({ address }) => this.#addresses.readInTurns(address),
    });
    this.#owner = this.#createOwner();
    this.#timer = setInterval(() => this.#tick(), tickMs).unref();
    this.#measure(options);
  }

  /** The number of open connections. */
  get size(): number {
    return this.#table.size;
  }

  /**
   * Accept a new connection or destroy it.
   *
   * @param serve called to serve the connection, later if its address has to wait; not called if the connection is
   *   refused.
   */
  accept(socket: net.Socket, serve: () => void): void {
    const host = socket.remoteAddress ?? "";
    const connection = new Connection(this.#owner, socket, this.#addresses.groupOf(host));
    const admission = this.#table.admit(connection, this.#nowMs());
    if (!admission.ok) {
      this.#tally.add(`refused_${admission.crowd}`, connection.address);
      socket.destroy();
      return;
    }
    if (admission.shed !== null) this.#cut(admission.shed, "shed");
    watchSocket(socket, connection);
    connection.isTrusted = this.#addresses.isSpared(host);
    let putBack: (() => void) | null = null;
    const begin = () => {
      connection.isWaiting = false;
      putBack?.();
      connection.cost = CONNECTION_COST;
      if (!socket.destroyed) serve();
    };
    // Serve connections on agents' ports without waiting: a thousand agents behind one address can reconnect at the
    // same moment, and must not wait for each other.
    if (connection.isTrusted || this.#servesAtOnce) begin();
    else if (!this.#addresses.enter(connection, begin)) this.#cut(connection, "refused_address");
    // Remove a waiting connection when its peer disconnects. Otherwise the closed connection would delay the other
    // waiting connections.
    else if (connection.isWaiting) putBack = destroyWithPeer(socket);
  }

  /** Cut the connections that wait to be served. Must be called after the port has stopped accepting connections. */
  refuseNewcomers(): void {
    for (const { socket } of this.#addresses.refuseNewcomers()) socket.destroy();
  }

  /** Report that a connection continues on a TLS socket, which decrypts the bytes of `raw`. */
  secured(socket: net.Socket, raw: net.Socket): void {
    const connection = held(raw);
    if (connection === undefined) return;
    hold(socket, connection);
    connection.cost += HANDSHAKE_COST;
  }

  /** Report that the protocol of a connection is known. */
  recognised(socket: net.Socket): void {
    const connection = held(socket);
    if (connection?.standing === "fresh") this.#move(connection, "idle");
  }

  /** Report that a connection could not be accepted, usually for lack of file descriptors. */
  notAccepted(error: unknown): void {
    this.#tally.add("not_accepted", errorCode(error) ?? "");
  }

  /**
   * Close connections without a call, at most `most` of each standing, because the process has run out of file
   * descriptors. Returns how many were closed.
   */
  spare(most: number): number {
    const spared = this.#table.spareable(most);
    for (const connection of spared) this.#cut(connection, "out_of_descriptors");
    return spared.length;
  }

  /** Stop all checks. */
  close(): void {
    clearInterval(this.#timer);
    this.#checks.close();
  }

  #createOwner(): ConnectionOwner {
    return {
      gone: (connection) => this.#forget(connection),
      sessionBegan: (connection) => {
        this.#checks.add(connection);
        this.#addresses.sessionBegan(connection);
      },
      settled: (connection) => {
        if (connection.standing === "fresh") this.#move(connection, "idle");
      },
      callBegan: (connection) => {
        connection.calls += 1;
        connection.cost = 0;
        connection.budget?.streamOpened();
        if (connection.standing === "known") return;
        this.#move(connection, "busy");
        if (this.#addresses.callBegan(connection)) this.#onNuisance(connection, "owing");
      },
      callEnded: (connection) => this.#onCallEnd(connection),
      identified: (connection) => {
        if (connection.standing === "known" || connection.calls === 0) return;
        connection.askedAtMs = 0;
        this.#move(connection, "known");
      },
      nuisance: (connection, nuisance) => this.#onNuisance(connection, nuisance),
    };
  }

  #forget(connection: Connection): void {
    // Limit the debt from a connection without a handshake. A port scanner does not complete handshakes, so a client
    // that shares a scanner's address waits for a second at most.
    const mostOwed = connection.cost <= CONNECTION_COST ? CONNECTIONS_MOST_OWED : undefined;
    this.#addresses.spend(connection, connection.cost, mostOwed);
    this.#addresses.leave(connection);
    this.#table.remove(connection);
    this.#checks.delete(connection);
  }

  #onCallEnd(connection: Connection): void {
    connection.calls -= 1;
    if (connection.calls > 0) return;
    connection.provedAtMs = this.#nowMs();
    this.#move(connection, "idle");
  }

  #onNuisance(connection: Connection, nuisance: Nuisance): void {
    // Ignore calls that end because their connection is closing.
    if (connection.socket.destroyed || connection.session?.destroyed === true || this.#flooding.has(connection)) return;
    connection.budget ??= new FloodBudget();
    // Do not charge for "owing", because the address is already in debt.
    if (nuisance !== "owing") this.#addresses.spend(connection, NUISANCE_COSTS[nuisance]);
    // Record pings and settings as work, because one packet can contain thousands of them. Resets and pipelined
    // requests are already recorded as calls.
    if (nuisance === "ping" || nuisance === "settings") this.#addresses.brought(connection, NUISANCE_COSTS[nuisance]);
    if (connection.budget.spend(nuisance, this.#nowMs())) this.#cut(connection, "flood");
  }

  #move(connection: Connection, standing: Standing): void {
    this.#table.move(connection, standing, this.#nowMs());
  }

  #tick(): void {
    for (const connection of this.#table.overdue(this.#nowMs(), MOST_ENDED_A_TICK)) {
      this.#endInOrder(connection);
    }
    this.#checks.tick();
    this.#tally.say();
  }

  #endInOrder(connection: Connection): void {
    const { session, standing } = connection;
    if (session === null || standing === "fresh") {
      this.#cut(connection, standing === "fresh" ? "silent" : "idle");
      return;
    }
    if (connection.endingAtMs === 0) {
      this.#tally.add("idle", connection.address);
      session.close();
    }
    this.#checks.linger(connection);
  }

  #cut(connection: Connection, reason: EndReason): void {
    this.#tally.add(reason, connection.address);
    const { session, socket } = connection;
    if (reason === "flood") this.#addresses.spend(connection, FLOOD_COST);
    if (reason !== "flood" || session === null) {
      socket.destroy();
      return;
    }
    // Do not destroy the session here: this code runs in a callback of the session while it is still reading the frame.
    // The GOAWAY reports the reason. The socket ends afterwards, or the next checks destroy it.
    this.#flooding.add(connection);
    setImmediate(() => {
      this.#flooding.delete(connection);
      session.destroy(new Error("the peer sends too many frames"), http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
    });
  }

  /** The time in whole milliseconds, never 0. V8 stores whole numbers without allocation. */
  #nowMs(): number {
    return Math.ceil(this.#clock.nowMs()) + 1;
  }

  #measure({ name, limits, metrics }: ConnectionKeeperOptions): void {
    const open = gauge(metrics, {
      name: "rollcall_connections",
      help: "Open connections by port and kind. Connections are anonymous until an agent has proved its identity.",
      labelNames: ["port", "kind"],
    });
    gauge(metrics, {
      name: "rollcall_connections_limit",
      help: "Maximum number of connections of a port.",
      labelNames: ["port"],
    }).set({ port: name }, limits.maxConnections);
    const waiting = gauge(metrics, {
      name: "rollcall_connections_waiting",
      help: "New connections that wait to be read because their address is over its budget.",
      labelNames: ["port"],
    });
    onScrape(metrics, () => {
      waiting.set({ port: name }, this.#addresses.waiting);
      const { size, anonymousClients } = this.#table;
      open.set({ port: name, kind: "anonymous" }, anonymousClients);
      open.set({ port: name, kind: "known" }, size - anonymousClients);
    });
  }
}

/**
 * Destroy a socket that waits to be served once its peer has closed it. Node.js reports the close only after it has
 * read everything sent before, so this reads the data. Call the returned function before the socket is served: it puts
 * the data back.
 */
function destroyWithPeer(socket: net.Socket): () => void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const onData = (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MOST_BYTES || chunks.length >= MOST_CHUNKS) socket.pause();
  };
  const onEnd = () => socket.destroy();
  socket.on("data", onData);
  socket.once("end", onEnd);
  return () => {
    socket.off("data", onData);
    socket.off("end", onEnd);
    // After resume(), the data flows in the next tick, to the listeners that are registered by then.
    socket.pause();
    if (bytes > 0) socket.unshift(Buffer.concat(chunks));
    socket.resume();
  };
}
