import type http2 from "node:http2";
import type { Connection } from "./connection.ts";
import type { EndReason } from "./connection-tally.ts";
import { FloodBudget } from "./flood-budget.ts";

/** From one answered ping of a stranger's connection to the next. */
const PROOF_MS = 30_000;
/** How long the peer of a connection that was ended in order may take to close its side. */
const LINGER_MS = 5_000;
/** All connections are looked at within twenty ticks; up to so many at each. */
const LOOKED_AT_A_TICK = 500;
const TICKS_A_ROUND = 20;
/** How long, how many at a time, and how often new sessions are looked at besides. */
const YOUNG_MS = 1_000;
const MOST_YOUNG = 200;
const YOUNG_TICK_MS = 10;
/** Below these, the bytes of a connection are not worth counting. */
const SMALL_BYTES = 65_536;
const SMALL_BYTES_KNOWN = 4 * 1_048_576;

const NONE: Iterator<Connection> = [][Symbol.iterator]();

export interface SessionChecksOptions {
  /** How long a peer may take to answer a ping. */
  readonly answerMs: number;
  /** From one answered ping of a caller who has shown who it is to the next. */
  readonly knownEveryMs: number;
  /** Whole monotonic milliseconds, never 0. */
  nowMs(): number;
  /** End a connection that failed a check. */
  cut(connection: Connection, reason: EndReason): void;
  /** Told of a stranger that has just sent many unexplained bytes. */
  sentMuch(connection: Connection): void;
}

/**
 * Looks at the sessions of a port, some at each tick: whether they flood, whether they still answer, and whether what
 * has ended is gone.
 */
export class SessionChecks {
  readonly #options: SessionChecksOptions;
  readonly #connections = new Set<Connection>();
  /** The latest sessions, with the time until which they are looked at more often. */
  readonly #young = new Map<Connection, number>();
  #youngTimer: NodeJS.Timeout | null = null;
  #round: Iterator<Connection> = NONE;

  constructor(options: SessionChecksOptions) {
    this.#options = options;
  }

  /** Look at a connection from now on; a stranger is asked at the next look. */
  add(connection: Connection): void {
    connection.provedAtMs = this.#options.nowMs() - PROOF_MS;
    this.#connections.add(connection);
    // The oldest make room: otherwise two hundred silent sessions a second would keep those that flood from being seen.
    for (const oldest of this.#young.keys()) {
      if (this.#young.size < MOST_YOUNG) break;
      this.#forgetYoung(oldest);
    }
    const nowMs = this.#options.nowMs();
    this.#young.set(connection, nowMs + YOUNG_MS);
    connection.budget ??= new FloodBudget(nowMs);
    this.#youngTimer ??= setInterval(() => this.#lookAtYoung(), YOUNG_TICK_MS).unref();
  }

  delete(connection: Connection): void {
    this.#connections.delete(connection);
    this.#young.delete(connection);
  }

  /** Look at nothing any more. */
  close(): void {
    if (this.#youngTimer !== null) clearInterval(this.#youngTimer);
    this.#youngTimer = null;
  }

  /**
   * Look at the bytes of sessions that have just begun. A flood that HTTP/2 in Node.js does not tell of brings
   * megabytes before the next tick.
   */
  #lookAtYoung(): void {
    const nowMs = this.#options.nowMs();
    for (const [connection, untilMs] of this.#young) {
      if (nowMs >= untilMs || connection.isTrusted || connection.standing === "known") {
        this.#forgetYoung(connection);
      } else if (connection.session?.destroyed === false) this.#judgeBytes(connection);
    }
    if (this.#young.size === 0) this.close();
  }

  #forgetYoung(connection: Connection): void {
    this.#young.delete(connection);
    if (connection.budget?.isClear === true) connection.budget = null;
  }

  /** Look at the next of them. */
  tick(): void {
    const { size } = this.#connections;
    // An iterator that is not moved keeps what was in the set when that shrank.
    if (size === 0) this.#round = NONE;
    let left = Math.min(size, Math.max(LOOKED_AT_A_TICK, Math.ceil(size / TICKS_A_ROUND)));
    for (; left > 0; left -= 1) {
      const next = this.#next();
      if (next === undefined) break;
      this.#look(next);
    }
  }

  /** A socket that was ended in order is still open until its peer has closed it too. */
  linger(connection: Connection): void {
    const nowMs = this.#options.nowMs();
    if (connection.endingAtMs === 0) connection.endingAtMs = nowMs;
    else if (nowMs - connection.endingAtMs >= LINGER_MS) connection.socket.destroy();
  }

  /** A set may change while it is walked through: those that come are found, those that go are not. */
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
    else if (!this.#judgeBytes(connection)) this.#checkAnswer(connection, session);
  }

  /** Whether that was the end of it. */
  #judgeBytes(connection: Connection): boolean {
    const { bytesRead } = connection.socket;
    const small = connection.standing === "known" ? SMALL_BYTES_KNOWN : SMALL_BYTES;
    if (bytesRead <= small) return false;
    connection.budget ??= new FloodBudget();
    const verdict = connection.budget.look(bytesRead, connection.calls, this.#options.nowMs());
    if (verdict === "flood") this.#options.cut(connection, "flood");
    if (verdict === "much" && !connection.isTrusted) this.#options.sentMuch(connection);
    return verdict === "flood";
  }

  #checkAnswer(connection: Connection, session: http2.ServerHttp2Session): void {
    const { answerMs, knownEveryMs, cut } = this.#options;
    const nowMs = this.#options.nowMs();
    if (connection.askedAtMs === 0) {
      // Whether a welcomed agent is alive is seen by its Beats.
      const everyMs = connection.standing === "known" ? knownEveryMs : PROOF_MS;
      if (nowMs - connection.provedAtMs >= everyMs) this.#ask(connection, session, nowMs);
      return;
    }
    const isLate = nowMs - connection.askedAtMs >= answerMs;
    // With no call under way there is nothing that a ping could wait behind: one that was not even sent never will be.
    const isStuck = connection.calls === 0 && (session.state.outboundQueueSize ?? 0) > 0;
    if (isLate || isStuck) cut(connection, "unresponsive");
  }

  #ask(connection: Connection, session: http2.ServerHttp2Session, nowMs: number): void {
    connection.askedAtMs = nowMs;
    const onAnswer = (error: Error | null) => {
      // A session that ends cancels what is not answered.
      if (error !== null) return;
      connection.askedAtMs = 0;
      connection.provedAtMs = this.#options.nowMs();
    };
    // Node.js sends no ping on a session that is draining. Settings are acknowledged just as well.
    if (session.closed) session.settings({}, onAnswer);
    else if (!session.ping(onAnswer)) this.#options.cut(connection, "unresponsive");
  }
}
