import type http2 from "node:http2";
import type { Connection } from "./connection.ts";
import type { EndReason } from "./connection-tally.ts";
import { FloodBudget } from "./flood-budget.ts";

/** Time between two answered pings of an anonymous connection, in milliseconds. */
const PROOF_MS = 30_000;
/** How long the peer can take to close its side after a connection was closed cleanly. */
const LINGER_MS = 5_000;
/** Minimum number of connections to check per tick. All connections are checked within TICKS_A_ROUND ticks. */
const SCANNED_PER_TICK = 500;
const TICKS_A_ROUND = 20;
/** Additional checks of new sessions: how long they last, for how many sessions at a time, and their interval. */
const YOUNG_MS = 1_000;
const MOST_YOUNG = 200;
const YOUNG_TICK_MS = 10;
/** Number of bytes that a connection must have sent before it is checked for floods of bytes. */
const SMALL_BYTES = 65_536;
const SMALL_BYTES_KNOWN = 4 * 1_048_576;

const NONE: Iterator<Connection> = [][Symbol.iterator]();

export interface SessionChecksOptions {
  /** How long a peer can take to answer a ping. */
  readonly answerMs: number;
  /** Time between two answered pings of a connection with an identified caller. */
  readonly knownEveryMs: number;
  /** The monotonic time in whole milliseconds, never 0. */
  nowMs(): number;
  /** Close a connection that failed a check. */
  cut(connection: Connection, reason: EndReason): void;
  /** Called when an anonymous connection has just sent many unexplained bytes. */
  sentMuch(connection: Connection): void;
}

/**
 * Checks the sessions of a port, some per tick: whether they flood, whether they still respond, and whether the
 * connections of ended sessions have closed.
 */
export class SessionChecks {
  readonly #options: SessionChecksOptions;
  readonly #connections = new Set<Connection>();
  /** The newest sessions, each with the time when its additional checks end. */
  readonly #young = new Map<Connection, number>();
  #youngTimer: NodeJS.Timeout | null = null;
  #round: Iterator<Connection> = NONE;

  constructor(options: SessionChecksOptions) {
    this.#options = options;
  }

  /** Check a connection from now on. If it is anonymous, its next check pings it. */
  add(connection: Connection): void {
    connection.provedAtMs = this.#options.nowMs() - PROOF_MS;
    this.#connections.add(connection);
    // Remove the oldest sessions. Otherwise two hundred silent sessions per second would keep floods from being
    // checked.
    for (const oldest of this.#young.keys()) {
      if (this.#young.size < MOST_YOUNG) break;
      this.#forgetYoung(oldest);
    }
    const nowMs = this.#options.nowMs();
    this.#young.set(connection, nowMs + YOUNG_MS);
    connection.budget ??= new FloodBudget(nowMs);
    this.#youngTimer ??= setInterval(() => this.#scanYoung(), YOUNG_TICK_MS).unref();
  }

  delete(connection: Connection): void {
    this.#connections.delete(connection);
    this.#young.delete(connection);
  }

  /** Stop all checks. */
  close(): void {
    if (this.#youngTimer !== null) clearInterval(this.#youngTimer);
    this.#youngTimer = null;
  }

  /**
   * Check the bytes of new sessions. A flood that HTTP/2 in Node.js does not report can send megabytes before the
   * next tick.
   */
  #scanYoung(): void {
    const nowMs = this.#options.nowMs();
    for (const [connection, untilMs] of this.#young) {
      if (nowMs >= untilMs || connection.isTrusted || connection.standing === "known") {
        this.#forgetYoung(connection);
      } else if (connection.session?.destroyed === false) this.#evaluateBytes(connection);
    }
    if (this.#young.size === 0) this.close();
  }

  #forgetYoung(connection: Connection): void {
    this.#young.delete(connection);
    if (connection.budget?.isClear === true) connection.budget = null;
  }

  /** Check the next connections. */
  tick(): void {
    const { size } = this.#connections;
    // Drop the iterator, because an unused iterator keeps old entries of the set in memory.
    if (size === 0) this.#round = NONE;
    let left = Math.min(size, Math.max(SCANNED_PER_TICK, Math.ceil(size / TICKS_A_ROUND)));
    for (; left > 0; left -= 1) {
      const next = this.#next();
      if (next === undefined) break;
      this.#look(next);
    }
  }

  /** Destroy the socket of a cleanly closed connection, if its peer does not close it in time. */
  linger(connection: Connection): void {
    const nowMs = this.#options.nowMs();
    if (connection.endingAtMs === 0) connection.endingAtMs = nowMs;
    else if (nowMs - connection.endingAtMs >= LINGER_MS) connection.socket.destroy();
  }

  /**
   * Get the next connection to check. The set can change during the iteration, which then includes added connections
   * and skips removed ones.
   */
  #next(): Connection | undefined {
    let next = this.#round.next();
    if (next.done === true) {
      this.#round = this.#connections.values();
      next = this.#round.next();
    }
    return next.done === true ? undefined : next.value;
  }

  #look(connection: Connection): void {
    const { session, socket } = connection;
    if (session === null || socket.destroyed) return;
    if (session.destroyed) this.linger(connection);
    else if (!this.#evaluateBytes(connection)) this.#checkAnswer(connection, session);
  }

  /** Check whether a connection floods. Returns whether the connection was closed. */
  #evaluateBytes(connection: Connection): boolean {
    const { bytesRead } = connection.socket;
    const small = connection.standing === "known" ? SMALL_BYTES_KNOWN : SMALL_BYTES;
    if (bytesRead <= small) return false;
    connection.budget ??= new FloodBudget();
    const decision = connection.budget.look(bytesRead, connection.calls, this.#options.nowMs());
    if (decision === "flood") this.#options.cut(connection, "flood");
    if (decision === "much" && !connection.isTrusted) this.#options.sentMuch(connection);
    return decision === "flood";
  }

  #checkAnswer(connection: Connection, session: http2.ServerHttp2Session): void {
    const { answerMs, knownEveryMs, cut } = this.#options;
    const nowMs = this.#options.nowMs();
    if (connection.askedAtMs === 0) {
      // Ping a known connection less often, because the heartbeats of its agent show whether it is alive.
      const everyMs = connection.standing === "known" ? knownEveryMs : PROOF_MS;
      if (nowMs - connection.provedAtMs >= everyMs) this.#ask(connection, session, nowMs);
      return;
    }
    const isLate = nowMs - connection.askedAtMs >= answerMs;
    // Close a session whose ping has not been sent although no call in progress delays it. Such a ping will never be
    // sent.
    const isStuck = connection.calls === 0 && (session.state.outboundQueueSize ?? 0) > 0;
    if (isLate || isStuck) cut(connection, "unresponsive");
  }

  #ask(connection: Connection, session: http2.ServerHttp2Session, nowMs: number): void {
    connection.askedAtMs = nowMs;
    const onAnswer = (error: Error | null) => {
      // Ignore the ping of a session that ended: the end cancels unanswered pings.
      if (error !== null) return;
      connection.askedAtMs = 0;
      connection.provedAtMs = this.#options.nowMs();
    };
    // Send settings on a draining session, because Node.js sends no ping on it. The peer must acknowledge settings
    // too.
    if (session.closed) session.settings({}, onAnswer);
    else if (!session.ping(onAnswer)) this.#options.cut(connection, "unresponsive");
  }
}
