/**
 * A clock that measures the time during which this process could have received a heartbeat. It follows the real,
 * monotonic clock, but stands still while the process is stopped, is starved of CPU, or is unsure of its lease. So a
 * `Detector` on this clock grants the lost time to every node without moving any deadline.
 *
 * The clock never runs faster than the real one, and never backwards. If a suspension takes back time that `at()` has
 * already returned, the clock stands still until it has caught up. All times are milliseconds. The clock starts at the
 * real time.
 */
export class ObservedTime {
  readonly #maxGapMs: number;
  /** The real time of the last call that updated the clock. */
  #realMs: number;
  /** The time observed up to `#realMs`. A suspension sets it back. */
  #exactMs: number;
  /** The highest value ever returned. The clock never returns less. */
  #highestMs: number;
  #suspendedSinceMs: number | null = null;
  /** The real time until which the clock stands still because of standStill(). */
  #stillUntilMs = Number.NEGATIVE_INFINITY;
  #lostTotalMs = 0;
  /**
   * The recent periods when the clock stood still, in order, so that a suspension does not take back the same time
   * again.
   */
  #losses: readonly Loss[] = [];

  /**
   * @param options `maxGapMs` is the longest normal time between two calls of `advance()`; any time beyond it is lost.
   *   Set it to several times the interval of these calls.
   */
  constructor(options: { readonly startMs: number; readonly maxGapMs: number }) {
    this.#maxGapMs = options.maxGapMs;
    this.#realMs = options.startMs;
    this.#exactMs = options.startMs;
    this.#highestMs = options.startMs;
  }

  get suspended(): boolean {
    return this.#suspendedSinceMs !== null;
  }

  /** All time lost and granted so far. The time of a suspension is added when the suspension ends. */
  get lostTotalMs(): number {
    return this.#lostTotalMs;
  }

  /** The observed time at a given real time. It is at most `maxGapMs` ahead of the last advance. */
  at(realMs: number): number {
    if (this.#suspendedSinceMs === null) {
      const fromMs = Math.max(this.#realMs, Math.min(realMs, this.#stillUntilMs));
      const elapsedMs = Math.min(realMs - fromMs, this.#maxGapMs);
      this.#highestMs = Math.max(this.#highestMs, this.#exactMs + elapsedMs);
    }
    return this.#highestMs;
  }

  /**
   * Follow the real clock. Call this at least every tick, after reading the sockets.
   *
   * @returns how much time was lost since the last call: the time beyond `maxGapMs`, and the time while the clock stood
   *   still. 0 while suspended.
   */
  advance(realMs: number): number {
    if (this.#suspendedSinceMs !== null || realMs <= this.#realMs) return 0;
    const elapsedMs = realMs - this.#realMs;
    const stillMs = Math.max(0, Math.min(realMs, this.#stillUntilMs) - this.#realMs);
    const gapMs = Math.max(0, elapsedMs - stillMs - this.#maxGapMs);
    if (stillMs > 0) this.#recordLoss({ fromMs: this.#realMs, toMs: this.#realMs + stillMs });
    if (gapMs > 0) this.#recordLoss({ fromMs: realMs - gapMs, toMs: realMs });
    const lostMs = stillMs + gapMs;
    this.#exactMs += elapsedMs - lostMs;
    this.#realMs = realMs;
    this.#lostTotalMs += lostMs;
    this.#highestMs = Math.max(this.#highestMs, this.#exactMs);
    return lostMs;
  }

  /**
   * Stand still for a given time from now on, then continue automatically. All that time is granted. If the clock
   * already stands still for longer, the call has no effect.
   */
  standStill(realMs: number, forMs: number): void {
    this.advance(realMs);
    this.#stillUntilMs = Math.max(this.#stillUntilMs, realMs + forMs);
  }

  /**
   * Stop the clock until `resume()`. All time since `sinceRealMs` then counts as lost, even if it was already observed.
   * `sinceRealMs` is, for example, the time of the last certain renewal of a lease. If the clock is already suspended,
   * the earlier time applies.
   */
  suspend(sinceRealMs: number): void {
    if (this.#suspendedSinceMs !== null) {
      this.#suspendedSinceMs = Math.min(this.#suspendedSinceMs, sinceRealMs);
      return;
    }
    this.advance(sinceRealMs);
    this.#suspendedSinceMs = sinceRealMs;
  }

  /**
   * Resume the clock.
   *
   * @returns how much time is granted: all time since the start of the suspension, except time that was already
   *   granted.
   */
  resume(realMs: number): number {
    if (this.#suspendedSinceMs === null) return 0;
    const fromMs = Math.min(this.#suspendedSinceMs, realMs);
    const grantedMs = realMs - fromMs - this.#lostSince(fromMs);
    const elapsedMs = realMs - this.#realMs;
    this.#suspendedSinceMs = null;
    this.#recordLoss({ fromMs, toMs: realMs });
    this.#exactMs += elapsedMs - grantedMs;
    this.#realMs = realMs;
    this.#lostTotalMs += grantedMs;
    return grantedMs;
  }

  #lostSince(sinceMs: number): number {
    return this.#losses.reduce((sumMs, { fromMs, toMs }) => sumMs + Math.max(0, toMs - Math.max(fromMs, sinceMs)), 0);
  }

  /** Only a limited number of losses is remembered. Older ones may be granted twice, which harms no node. */
  #recordLoss(loss: Loss): void {
    const earlier = this.#losses.filter(({ fromMs }) => fromMs < loss.fromMs);
    const shortened = earlier.map(({ fromMs, toMs }) => ({
      fromMs,
      toMs: Math.min(toMs, loss.fromMs),
    }));
    this.#losses = [...shortened, loss].slice(-REMEMBERED_LOSSES);
  }
}

/** A period of real time during which the clock stood still. */
interface Loss {
  readonly fromMs: number;
  readonly toMs: number;
}

const REMEMBERED_LOSSES = 64;
