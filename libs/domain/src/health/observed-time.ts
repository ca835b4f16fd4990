/**
 * The time in which this process could have seen a heartbeat. It runs with the real, monotonic clock, but stands still
 * while the process was stopped, starved, or in doubt about its lease. A `Detector` that runs on it grants the lost
 * time to every node at once: no deadline has to be moved.
 *
 * It never runs faster than the real clock and never backwards. Where a suspension takes back time that was already
 * given out, it stands still until that is paid. All times are milliseconds; it starts equal to the real clock.
 */
export class ObservedTime {
  readonly #maxGapMs: number;
  /** Up to where the real clock was followed. */
  #realMs: number;
  /** The time observed by then; suspensions set it back. */
  #exactMs: number;
  /** The highest value given out, below which none may fall. */
  #highestMs: number;
  #suspendedSinceMs: number | null = null;
  /** Up to when it stands still by itself. */
  #stillUntilMs = Number.NEGATIVE_INFINITY;
  #lostTotalMs = 0;
  /**
   * The recent times at which the clock stood still, in order, so that a suspension does not take back the same time
   * again.
   */
  #losses: readonly Loss[] = [];

  /**
   * @param options `maxGapMs` is the longest time between two calls of `advance()` that passes for normal; what a gap
   *   lasts beyond it is lost. It must exceed the interval of these calls a few times.
   */
  constructor(options: { readonly startMs: number; readonly maxGapMs: number }) {
    this.#maxGapMs = options.maxGapMs;
    this.#realMs = options.startMs;
    this.#exactMs = options.startMs;
    this.#highestMs = options.startMs;
  }

  /** Whether it is stopped. */
  get suspended(): boolean {
    return this.#suspendedSinceMs !== null;
  }

  /** All the time that was lost and granted so far; that of a suspension is added when it ends. */
  get lostTotalMs(): number {
    return this.#lostTotalMs;
  }

  /** The observed time at a real time: at most `maxGapMs` beyond the last advance. */
  at(realMs: number): number {
    if (this.#suspendedSinceMs === null) {
      const fromMs = Math.max(this.#realMs, Math.min(realMs, this.#stillUntilMs));
      const elapsedMs = Math.min(realMs - fromMs, this.#maxGapMs);
      this.#highestMs = Math.max(this.#highestMs, this.#exactMs + elapsedMs);
    }
    return this.#highestMs;
  }

  /**
   * Follow the real clock; the owner calls this at least every tick, after it has read its sockets.
   *
   * @returns how much time was lost since the last call: what exceeds `maxGapMs`, and what it stood still. Nothing
   * while suspended.
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
   * Stand still from now on for a while, and then go on by itself: all that time is granted. A longer one that runs
   * already stays.
   */
  standStill(realMs: number, forMs: number): void {
    this.advance(realMs);
    this.#stillUntilMs = Math.max(this.#stillUntilMs, realMs + forMs);
  }

  /**
   * Stop. When it resumes, everything since `sinceRealMs` counts as lost, also what was observed in between: since the
   * last sure renewal of a lease, for example. Suspended again, it keeps the earlier time.
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
   * Go on.
   *
   * @returns how much time is granted: all since the suspension began, less what had been granted within it before.
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

  /** A loss that is forgotten can only be granted twice, which harms no node. */
  #recordLoss(loss: Loss): void {
    const earlier = this.#losses.filter(({ fromMs }) => fromMs < loss.fromMs);
    const shortened = earlier.map(({ fromMs, toMs }) => ({
      fromMs,
      toMs: Math.min(toMs, loss.fromMs),
    }));
    this.#losses = [...shortened, loss].slice(-REMEMBERED_LOSSES);
  }
}

/** A stretch of real time in which the observed time stood still. */
interface Loss {
  readonly fromMs: number;
  readonly toMs: number;
}

const REMEMBERED_LOSSES = 64;
