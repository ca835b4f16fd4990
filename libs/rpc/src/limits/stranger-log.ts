import { type Clock, counter, type Logger, type MetricsRegistry, systemClock } from "@rollcall/process";

/**
 * What decides which lines about strangers are written. The domain's NoiseTable is one; times are monotonic
 * milliseconds.
 */
export interface NoiseCounts {
  note(peer: string, what: string, nowMs: number): boolean;
  summaryDueMs(): number | null;
  summarise(nowMs: number): readonly {
    readonly key: { readonly source: string; readonly what: string } | null;
    readonly leftOut: number;
  }[];
}

/**
 * What counts how much is spent on strangers for nothing, by address. The domain's StrangerBudget is one; costs are in
 * tenths of a millisecond, times monotonic milliseconds.
 */
export interface StrangerAccounts {
  groupOf(peer: string): string;
  isSpared(peer: string): boolean;
  spend(peer: string, cost: number, nowMs: number, mostOwed?: number): void;
  msUntilPaid(peer: string, nowMs: number): number;
}

export interface StrangerLogOptions {
  readonly log: Logger;
  /** Every line is written when null or absent. */
  readonly counts?: NoiseCounts | null;
  /** Where mistakes are charged; nowhere when absent. */
  readonly accounts?: StrangerAccounts;
  readonly clock?: Clock;
  readonly metrics?: MetricsRegistry;
}

/** A line about a caller who has not proved who it is. */
export interface StrangerLine {
  readonly level: "debug" | "info" | "warn" | "error";
  /** HOST:PORT. */
  readonly peer: string;
  /** What the line is counted as besides its peer: a reason, a code, a kind of failure. Not what the peer chose. */
  readonly what: string;
  readonly fields: object;
  readonly message: string;
  /** Whether it failed through the stranger's own fault: such events are charged to its address. */
  readonly isFault?: boolean;
}

/** What it costs to refuse a call: about a millisecond, most of it HTTP/2. */
const FAULT_COST = 10;

/**
 * The log of what strangers can cause: refused and failed calls of callers who are not known, broken requests, failed
 * handshakes. The first lines of each address about each thing are written, then a count once a minute, so that no one
 * can fill a disk by being refused. What concerns known callers does not come here.
 */
export class StrangerLog {
  readonly #log: Logger;
  readonly #counts: NoiseCounts | null;
  readonly #clock: Clock;
  /** What strangers have cost; null where it is not counted. */
  readonly accounts: StrangerAccounts | null;
  readonly #leftOut: (lines: number) => void;
  readonly #ending = new AbortController();
  #isWaiting = false;

  constructor({ log, counts = null, accounts, clock = systemClock, metrics }: StrangerLogOptions) {
    this.#log = log;
    this.#counts = counts;
    this.accounts = accounts ?? null;
    this.#clock = clock;
    const total =
      metrics === undefined
        ? null
        : counter(metrics, {
            name: "rollcall_log_lines_left_out_total",
            help: "Lines about callers who are not known that were counted in place of being written.",
          });
    this.#leftOut = (lines) => total?.inc(lines);
  }

  /** Write a line, or count it. */
  write({ level, peer, what, fields, message, isFault = false }: StrangerLine): void {
    if (isFault) this.accounts?.spend(peer, FAULT_COST, this.#clock.nowMs());
    const counts = this.#counts;
    const isWritten = counts === null || counts.note(peer, what, this.#clock.nowMs());
    if (isWritten) this.#log[level]({ peer, ...fields }, message);
    else this.#leftOut(1);
    if (counts !== null && !this.#isWaiting) void this.#summariseInTime(counts);
  }

  /** Log what was left out so far, without waiting. */
  close(): void {
    this.#ending.abort(new Error("the log is closed"));
    if (this.#counts !== null) this.#summarise(this.#counts);
  }

  /** It ends by itself once all is silent, so that an idle process is never woken for this. */
  async #summariseInTime(counts: NoiseCounts): Promise<void> {
    const { signal } = this.#ending;
    if (signal.aborted) return;
    this.#isWaiting = true;
    try {
      for (let dueMs = counts.summaryDueMs(); dueMs !== null; dueMs = counts.summaryDueMs()) {
        await this.#clock.sleep(dueMs - this.#clock.nowMs(), signal);
        this.#summarise(counts);
      }
    } catch {
      // Closed: the last summary has been written.
    } finally {
      this.#isWaiting = false;
    }
  }

  #summarise(counts: NoiseCounts): void {
    for (const { key, leftOut } of counts.summarise(this.#clock.nowMs())) {
      const of = key === null ? {} : { address: key.source, reason: key.what };
      this.#log.info({ ...of, lines: leftOut }, "lines about strangers left out");
    }
  }
}
