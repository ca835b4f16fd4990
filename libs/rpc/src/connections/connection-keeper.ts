import type http from "node:http";
import http2 from "node:http2";
import type net from "node:net";
import { type Clock, errorCode, gauge, type Logger, type MetricsRegistry, onScrape } from "@rollcall/process";
import type { StrangerAccounts } from "../limits/stranger-log.ts";
import { AddressKeeper } from "./address-keeper.ts";
import {
  Connection,
  type ConnectionOwner,
  grpcPeerOf,
  held,
  hold,
  watchHttp1,
  watchHttp2,
  watchSocket,
} from "./connection.ts";
import { type ConnectionLimits, ConnectionTable, type Standing } from "./connection-table.ts";
import { ConnectionTally, type EndReason } from "./connection-tally.ts";
import { FloodBudget, NUISANCE_COSTS, type Nuisance } from "./flood-budget.ts";
import { SessionChecks } from "./session-checks.ts";

export interface ConnectionKeeperOptions {
  /** What the port is called in the log and in metrics. */
  readonly name: string;
  readonly limits: ConnectionLimits;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly clock: Pick<Clock, "nowMs">;
  /** The costs of each address, shared by all ports. Null turns accounting and waiting off. */
  readonly accounts: StrangerAccounts | null;
  /** How often connections are looked at. Default 250 ms. */
  readonly tickMs?: number;
  /** How long a peer may take to answer a ping. Default 20 s. */
  readonly answerMs?: number;
  /** How often those are asked that have shown who they are. Default 5 min. */
  readonly knownEveryMs?: number;
}

const TICK_MS = 250;
/** As gRPC's own keepalive has it. */
const ANSWER_MS = 20_000;
/** For machines that lost power behind a proxy, whose kernel answers for them. */
const KNOWN_EVERY_MS = 300_000;
/** Most connections that are ended in one tick for each standing. */
const MOST_ENDED_A_TICK = 2_000;
/** What a connection without any call costs its address, and what its handshake costs besides. */
const CONNECTION_COST = 5;
const HANDSHAKE_COST = 10;
/** Those alone bring no debt that is not paid within a second. */
const CONNECTIONS_MOST_OWED = 2_000;
/** What a flood costs its address, besides what was counted of it. */
const FLOOD_COST = 1_000;

/** More than this is left with the kernel: what waits is not charged. Few clients send more before an answer. */
const MOST_BYTES = 8_192;
/** Reads, too: a packet may have one byte. */
const MOST_CHUNKS = 16;

/**
 * The connections of one port, from their acceptance to the end of their socket: counted by the sockets that exist,
 * bounded in number, and ended when they do nothing, answer nothing, or flood. Node.js stops reading from an HTTP/2
 * connection on which it sent GOAWAY for an error, and so never learns that its peer has closed it; there is no event
 * of it. So each connection of a stranger is asked by ping, and one that does not answer is cut. No connection has a
 * timer of its own. See docs/decisions/0024.
 */
export class ConnectionKeeper {
  readonly #table: ConnectionTable<Connection>;
  readonly #tally: ConnectionTally;
  readonly #checks: SessionChecks;
  readonly #owner: ConnectionOwner;
  readonly #clock: Pick<Clock, "nowMs">;
  /** Strangers by HOST:PORT, where they can become known. */
  readonly #strangers: Map<string, Connection> | null;
  readonly #addresses: AddressKeeper;
  /** Connections whose flood ends them before the next turn of the event loop. */
  readonly #flooding = new Set<Connection>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: ConnectionKeeperOptions) {
    const { limits, clock, tickMs = TICK_MS, answerMs = ANSWER_MS, knownEveryMs = KNOWN_EVERY_MS } = options;
    this.#table = new ConnectionTable(limits);
    this.#strangers = Number.isFinite(limits.maxStrangersOfAddress) ? new Map() : null;
    this.#tally = new ConnectionTally(options.name, options);
    this.#clock = clock;
    const nowMs = () => this.#nowMs();
    this.#addresses = new AddressKeeper({
      accounts: options.accounts,
      nowMs,
      strangersOf: (address) => this.#table.strangersOf(address),
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

  /** How many connections are open. */
  get size(): number {
    return this.#table.size;
  }

  /**
   * Take a new connection, or destroy it. @param serve goes on with it, later where its address has to wait; not at all
   * when it was not taken.
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
    this.#strangers?.set(grpcPeerOf(socket), connection);
    connection.isTrusted = this.#addresses.isSpared(host);
    let putBack: (() => void) | null = null;
    const begin = () => {
      connection.isWaiting = false;
      putBack?.();
      connection.cost = CONNECTION_COST;
      if (!socket.destroyed) serve();
    };
    // A thousand agents behind one address reconnect at the same moment, and must not queue behind each other.
    if (connection.isTrusted || this.#strangers !== null) begin();
    else if (!this.#addresses.enter(connection, begin)) this.#cut(connection, "refused_address");
    // One that has left would keep the others waiting.
    else if (connection.isWaiting) putBack = destroyWithPeer(socket);
  }

  /** Cut the connections that still wait to be served. Call it once the port has stopped accepting. */
  refuseNewcomers(): void {
    for (const { socket } of this.#addresses.refuseNewcomers()) socket.destroy();
  }

  /** Tell that a connection goes on in another socket, which decrypts it. */
  secured(socket: net.Socket, raw: net.Socket): void {
    const connection = held(raw);
    if (connection === undefined) return;
    hold(socket, connection);
    connection.cost += HANDSHAKE_COST;
  }

  /** Tell that it is known what a connection speaks. */
  recognised(socket: net.Socket): void {
    const connection = held(socket);
    if (connection?.standing === "fresh") this.#move(connection, "idle");
  }

  /** Tell that a stranger has shown who it is. It is one again when its last call has ended. @param peer HOST:PORT. */
  known(peer: string): void {
    const connection = this.#strangers?.get(peer);
    if (connection === undefined || connection.calls === 0) return;
    this.#strangers?.delete(peer);
    connection.askedAtMs = 0;
    this.#move(connection, "known");
  }

  /**
   * Look after the sessions of a server whose connections were accepted here. @param countsSettings whether floods of
   * settings are found by their number.
   */
  watchHttp2(server: http2.Http2Server, countsSettings: boolean): void {
    watchHttp2(server, countsSettings);
  }

  /** The same for a server of HTTP/1.1. */
  watchHttp1(server: http.Server): void {
    watchHttp1(server);
  }

  /** Tell that a connection could not be taken, most often for lack of descriptors. */
  notAccepted(error: unknown): void {
    this.#tally.add("not_accepted", errorCode(error) ?? "");
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
      nuisance: (connection, nuisance) => this.#onNuisance(connection, nuisance),
    };
  }

  #forget(connection: Connection): void {
    // Who shares an address with a port scanner waits for a second; a scanner finishes no handshake.
    const mostOwed = connection.cost <= CONNECTION_COST ? CONNECTIONS_MOST_OWED : undefined;
    this.#addresses.spend(connection, connection.cost, mostOwed);
    this.#addresses.leave(connection);
    this.#table.remove(connection);
    this.#checks.delete(connection);
    const peer = grpcPeerOf(connection.socket);
    if (this.#strangers?.get(peer) === connection) this.#strangers.delete(peer);
  }

  #onCallEnd(connection: Connection): void {
    connection.calls -= 1;
    if (connection.calls > 0) return;
    connection.provedAtMs = this.#nowMs();
    this.#move(connection, "idle");
    if (connection.isListed) this.#strangers?.set(grpcPeerOf(connection.socket), connection);
  }

  #onNuisance(connection: Connection, nuisance: Nuisance): void {
    // What ends takes its calls along.
    if (connection.socket.destroyed || connection.session?.destroyed === true || this.#flooding.has(connection)) return;
    connection.budget ??= new FloodBudget();
    // A debt itself costs nothing further.
    if (nuisance !== "owing") this.#addresses.spend(connection, NUISANCE_COSTS[nuisance]);
    // A packet of pings is thousands of them; the calls of resets and of requests behind each other were noted.
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
    // This runs in callbacks of the session, which still reads the frame: it must not be destroyed there. The GOAWAY
    // names the reason; the socket follows, or is destroyed by the next checks.
    this.#flooding.add(connection);
    setImmediate(() => {
      this.#flooding.delete(connection);
      session.destroy(new Error("the peer floods"), http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
    });
  }

  /** In whole milliseconds, which take no memory of their own, and never 0. */
  #nowMs(): number {
    return Math.ceil(this.#clock.nowMs()) + 1;
  }

  #measure({ name, limits, metrics }: ConnectionKeeperOptions): void {
    const open = gauge(metrics, {
      name: "rollcall_connections",
      help: "Connections of a port; strangers have not shown who they are, or need not.",
      labelNames: ["port", "kind"],
    });
    gauge(metrics, {
      name: "rollcall_connections_limit",
      help: "Most connections that a port takes at a time.",
      labelNames: ["port"],
    }).set({ port: name }, limits.maxConnections);
    const waiting = gauge(metrics, {
      name: "rollcall_connections_waiting",
      help: "New connections that are not read yet, because their address has cost more than it may.",
      labelNames: ["port"],
    });
    onScrape(metrics, () => {
      waiting.set({ port: name }, this.#addresses.waiting);
      const { size, strangers } = this.#table;
      open.set({ port: name, kind: "stranger" }, strangers);
      open.set({ port: name, kind: "known" }, size - strangers);
    });
  }
}

/**
 * Destroy a socket that is not served yet once its peer has closed it. Node.js tells of that only after all that came
 * before was read, so it is read here, and put back when the returned function is called, before the socket is served.
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
    // It flows again in the next tick, to what listens by then.
    socket.pause();
    if (bytes > 0) socket.unshift(Buffer.concat(chunks));
    socket.resume();
  };
}
