import { type Clock, counter, type Logger, type MetricsRegistry, systemClock } from "@rollcall/process";

/**
 * Decides which lines about anonymous clients are written, and counts the others. The domain's NoiseTable implements
 * it. Times are in monotonic milliseconds.
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
 * Counts the work that anonymous clients of each address waste. The domain's AnonymousBudget implements it. Costs are
 * in tenths of a millisecond, times in monotonic milliseconds.
 */
export interface AnonymousAccounts {
  groupOf(peer: string): string;
  isSpared(peer: string): boolean;
  spend(peer: string, cost: number, nowMs: number, mostOwed?: number): void;
  msUntilPaid(peer: string, nowMs: number): number;
}

export interface AnonymousLogOptions {
  readonly log: Logger;
  /** Decides which lines are written; null or absent to write every line. */
  readonly counts?: NoiseCounts | null;
  /** Where faults of clients are charged; absent to charge none. */
  readonly accounts?: AnonymousAccounts;
  readonly clock?: Clock;
  readonly metrics?: MetricsRegistry;
}

/** A line about an unauthenticated caller. */
export interface AnonymousLogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  /** The address of the client, as HOST:PORT. */
  readonly peer: string;
  /**
   * The kind of event: a reason, a code, a kind of failure. Never text that the peer chose. Lines are counted by kind
   * and by peer.
   */
  readonly what: string;
  readonly fields: object;
  readonly message: string;
  /** Whether the client itself caused the failure. Such events are charged to its address. */
  readonly isFault?: boolean;
}

/** The cost of refusing a call: about a millisecond, most of which is spent in HTTP/2. */
const FAULT_COST = 10;

/**
 * The log of events that anonymous clients can cause: calls of unknown callers that are refused or fail, broken
 * requests, failed handshakes. The first lines for each address and kind of event are written. Further lines are
 * counted, and the counts are written once a minute, so that refusals cannot fill a disk. Events of known callers are
 * not logged here.
 */
export class AnonymousLog {
  readonly #log: Logger;
  readonly #counts: NoiseCounts | null;
  readonly #clock: Clock;
  /** The costs of the anonymous clients of each address; null if they are not counted. */
  readonly accounts: AnonymousAccounts | null;
  readonly #leftOut: (lines: number) => void;
  readonly #ending = new AbortController();
  #isWaiting = false;

  constructor({ log, counts = null, accounts, clock = systemClock, metrics }: AnonymousLogOptions) {
    this.#log = log;
    this.#counts = counts;
    this.accounts = accounts ?? null;
    this.#clock = clock;
    const total =
      metrics === undefined
        ? null
        : counter(metrics, {
            name: "rollcall_log_lines_left_out_total",
            help: "Log lines about anonymous clients that were counted instead of written.",
          });
    this.#leftOut = (lines) => total?.inc(lines);
  }

  /** Write a line, or count it. */
  write({ level, peer, what, fields, message, isFault = false }: AnonymousLogLine): void {
    if (isFault) this.accounts?.spend(peer, FAULT_COST, this.#clock.nowMs());
    const counts = this.#counts;
    const isWritten = counts === null || counts.note(peer, what, this.#clock.nowMs());
    if (isWritten) this.#log[level]({ peer, ...fields }, message);
    else this.#leftOut(1);
    if (counts !== null && !this.#isWaiting) void this.#summariseInTime(counts);
  }

  /** Log the counts of omitted lines now. */
  close(): void {
    this.#ending.abort(new Error("the log is closed"));
    if (this.#counts !== null) this.#summarise(this.#counts);
  }

  /** Log summaries when they are due. This ends once lines stop arriving, so it does not wake an idle process. */
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
      // Write no summary, because the log is closed, and close() has written the last one.
    } finally {
      this.#isWaiting = false;
    }
  }

  #summarise(counts: NoiseCounts): void {
    for (const { key, leftOut } of counts.summarise(this.#clock.nowMs())) {
      const of = key === null ? {} : { address: key.source, reason: key.what };
      this.#log.info({ ...of, lines: leftOut }, "log lines about anonymous clients omitted");
    }
  }
}
