/** What a peer makes work with and gets nothing for. */
export type Nuisance = "ping" | "settings" | "reset" | "pipelined" | "owing";

/**
 * What each costs, in about tenths of a millisecond. A call that is given up is not rare; a change of settings is.
 * `owing` is a call that is begun while its address owes more than it may.
 */
export const NUISANCE_COSTS: Readonly<Record<Nuisance, number>> = {
  ping: 1,
  reset: 5,
  settings: 20,
  pipelined: 20,
  owing: 50,
};

export type BytesVerdict = "fine" | "much" | "flood";

const BURST = 2_000;
const PER_SECOND = 200;

/** Unexplained bytes of a connection: frames of control, headers, a request that came in pieces. */
const BURST_BYTES = 262_144;
/** Honest peers send a few kilobytes of these; to process so many can take ten milliseconds. */
const MUCH_BYTES = 65_536;
const BYTES_PER_SECOND = 131_072;
/** What a stream may go on to send. */
const BYTES_PER_SECOND_A_STREAM = 65_536;
/** What a stream may bring along: the largest message, its frames and its headers. */
const BYTES_A_STREAM = 1_179_648;

/**
 * How much nuisance one connection may be: 2,000 pings at once and 200 a second after that, or 400 and 40 resets, or
 * 100 and 10 changes of settings, or as many requests of HTTP/1.1 that do not wait for the answer before; and 256 KiB
 * and 128 KiB a second beyond 1.125 MiB for each stream that it opens and 64 KiB a second for each that is open. What
 * HTTP/2 in Node.js does not tell of, such as floods of WINDOW_UPDATE or PRIORITY, is found by its bytes. Messages that
 * a handler explains are not counted: an agent may bring any amount of output to a reading. A level is kept as what is
 * owed, so that a new one needs no time.
 */
export class FloodBudget {
  #owed = 0;
  #owedBytes = 0;
  #atMs = 0;
  #bytesAtMs: number;
  #bytesSeen = 0;
  #streams = 0;

  /**
   * @param bytesSinceMs since when every stream of the connection was noted. When absent, what came before the first
   * look is not counted.
   */
  constructor(bytesSinceMs = Number.NEGATIVE_INFINITY) {
    this.#bytesAtMs = bytesSinceMs;
  }

  /** Whether nothing is held against the connection. */
  get isClear(): boolean {
    return this.#owed === 0 && this.#owedBytes <= 0;
  }

  /** Note a nuisance; whether it was one too many. */
  spend(nuisance: Nuisance, nowMs: number): boolean {
    this.#owed = Math.max(0, this.#owed - since(this.#atMs, nowMs) * PER_SECOND);
    this.#atMs = Math.max(this.#atMs, nowMs);
    this.#owed += NUISANCE_COSTS[nuisance];
    return this.#owed > BURST;
  }

  /** Note that a stream was opened. */
  streamOpened(): void {
    this.#streams += 1;
  }

  /**
   * Count bytes as explained: a handler asked for the messages that they are, and has taken them. They may have been
   * looked at before.
   */
  explain(bytes: number): void {
    this.#bytesSeen += bytes;
  }

  /**
   * Judge how many bytes have come on the connection altogether: `much` when unexplained bytes have just come and many
   * are owed.
   */
  look(bytesRead: number, openStreams: number, nowMs: number): BytesVerdict {
    const fresh = bytesRead - this.#bytesSeen;
    const perSecond = BYTES_PER_SECOND + openStreams * BYTES_PER_SECOND_A_STREAM;
    const paid = since(this.#bytesAtMs, nowMs) * perSecond + this.#streams * BYTES_A_STREAM;
    this.#bytesSeen = bytesRead;
    this.#bytesAtMs = Math.max(this.#bytesAtMs, nowMs);
    this.#streams = 0;
    // What a stream may bring comes over several looks, for as long as it is open.
    const least = -openStreams * BYTES_A_STREAM;
    this.#owedBytes = Math.max(least, this.#owedBytes + fresh - paid);
    if (this.#owedBytes > BURST_BYTES) return "flood";
    return fresh > paid && this.#owedBytes > MUCH_BYTES ? "much" : "fine";
  }
}

function since(thenMs: number, nowMs: number): number {
  return Math.max(0, nowMs - thenMs) / 1_000;
}
