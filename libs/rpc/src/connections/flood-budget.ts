/**
 * Behaviour that causes work for the server and has no benefit for the peer. `owing` is a call that starts while its
 * address is over budget.
 */
export type Nuisance = "ping" | "settings" | "reset" | "pipelined" | "owing";

/**
 * The cost of each nuisance, in about tenths of a millisecond. Changes to settings cost more than resets, because
 * normal clients rarely change settings but often cancel calls.
 */
export const NUISANCE_COSTS: Readonly<Record<Nuisance, number>> = {
  ping: 1,
  reset: 5,
  settings: 20,
  pipelined: 20,
  owing: 50,
};

export type FloodLevel = "fine" | "much" | "flood";

const BURST = 2_000;
const PER_SECOND = 200;

/**
 * Maximum burst of unexplained bytes that a connection can send: control frames, headers, a request that arrives in
 * pieces.
 */
const BURST_BYTES = 262_144;
/**
 * Number of unexplained bytes above which a connection counts as sending much. Well-behaved peers send a few kilobytes.
 * Processing this many bytes can take ten milliseconds.
 */
const MUCH_BYTES = 65_536;
const BYTES_PER_SECOND = 131_072;
/** How many bytes per second an open stream can continue to send. */
const BYTES_PER_SECOND_A_STREAM = 65_536;
/** How many bytes a stream can send at first: the largest message with its frames and headers. */
const BYTES_A_STREAM = 1_179_648;

/**
 * How much nuisance one connection can cause.
 *
 * - Counted events: a burst of 2,000 pings and then 200 per second; or 400 resets and then 40 per second; or 100
 *   changes to settings, or pipelined HTTP/1.1 requests, and then 10 per second.
 * - Bytes: 256 KiB and then 128 KiB per second, in addition to 1.125 MiB for each stream that it opens and 64 KiB per
 *   second for each stream that is open.
 *
 * HTTP/2 in Node.js does not report some floods, such as WINDOW_UPDATE or PRIORITY frames, so they are detected by
 * their bytes. Messages that a handler explains are not counted, because an agent can send any amount of output when
 * its log is read. Each level is stored as a debt, so a new budget starts without knowing the time.
 */
export class FloodBudget {
  #owed = 0;
  #owedBytes = 0;
  #atMs = 0;
  #bytesAtMs: number;
  #bytesSeen = 0;
  #streams = 0;

  /**
   * @param bytesSinceMs when the recording of the connection's streams began. If absent, bytes before the first check
   *   are not counted.
   */
  constructor(bytesSinceMs = Number.NEGATIVE_INFINITY) {
    this.#bytesAtMs = bytesSinceMs;
  }

  /** Whether the connection has no debt. */
  get isClear(): boolean {
    return this.#owed === 0 && this.#owedBytes <= 0;
  }

  /** Record a nuisance. Returns whether it exceeds the budget. */
  spend(nuisance: Nuisance, nowMs: number): boolean {
    this.#owed = Math.max(0, this.#owed - since(this.#atMs, nowMs) * PER_SECOND);
    this.#atMs = Math.max(this.#atMs, nowMs);
    this.#owed += NUISANCE_COSTS[nuisance];
    return this.#owed > BURST;
  }

  /** Record that a stream was opened. */
  streamOpened(): void {
    this.#streams += 1;
  }

  /**
   * Count bytes as explained, because a handler requested and received the messages that contain them. The bytes may
   * have been checked before.
   */
  explain(bytes: number): void {
    this.#bytesSeen += bytes;
  }

  /**
   * Check the total number of bytes received on the connection. Returns `flood` if the debt exceeds the budget, and
   * `much` if unexplained bytes have just arrived and the debt is large.
   */
  look(bytesRead: number, openStreams: number, nowMs: number): FloodLevel {
    const fresh = bytesRead - this.#bytesSeen;
    const perSecond = BYTES_PER_SECOND + openStreams * BYTES_PER_SECOND_A_STREAM;
    const paid = since(this.#bytesAtMs, nowMs) * perSecond + this.#streams * BYTES_A_STREAM;
    this.#bytesSeen = bytesRead;
    this.#bytesAtMs = Math.max(this.#bytesAtMs, nowMs);
    this.#streams = 0;
    // Keep the unused allowance of open streams, so that a stream can use its allowance over several checks.
    const least = -openStreams * BYTES_A_STREAM;
    this.#owedBytes = Math.max(least, this.#owedBytes + fresh - paid);
    if (this.#owedBytes > BURST_BYTES) return "flood";
    return fresh > paid && this.#owedBytes > MUCH_BYTES ? "much" : "fine";
  }
}

function since(thenMs: number, nowMs: number): number {
  return Math.max(0, nowMs - thenMs) / 1_000;
}
