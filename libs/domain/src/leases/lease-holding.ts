/** How often a lease is renewed, and how long it lasts without. */
export interface LeaseTiming {
  /** From one renewal to the next. */
  readonly renewEveryMs: number;
  /**
   * Without a renewal for so long the holder doubts its lease, and others end it. It must exceed `renewEveryMs` several
   * times, or one slow answer looks like a failure.
   */
  readonly expiryMs: number;
}

export const LEASE_TIMING: LeaseTiming = { renewEveryMs: 2_000, expiryMs: 10_000 };

/** The lease may have run out, or be another's, since that time. */
export interface LeaseDoubt {
  readonly sinceMs: number;
}

/**
 * What the holder of a lease may rely on, by its own monotonic clock. A renewal raises the lease's counter at some time
 * after it was asked for, so no other process ends the lease until `expiryMs` after the question. The time of the
 * answer says nothing.
 */
export class LeaseHolding {
  readonly #expiryMs: number;
  #provedAtMs: number | null = null;
  #isHeld = false;

  constructor({ expiryMs }: Pick<LeaseTiming, "expiryMs">) {
    this.#expiryMs = expiryMs;
  }

  /** Whether the lease is relied on. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** When doubt begins unless a renewal succeeds before; null while the lease is not held. */
  get doubtAtMs(): number | null {
    return this.#isHeld && this.#provedAtMs !== null ? this.#provedAtMs + this.#expiryMs : null;
  }

  /**
   * A renewal, or the taking of the lease, succeeded. An answer that took `expiryMs` or longer proves nothing about
   * now, and changes nothing.
   *
   * @returns what begins with it: "held" for the first time, or "held again" after doubt; null for nothing new.
   */
  proved(askedAtMs: number, answeredAtMs: number): "held" | "held again" | null {
    if (answeredAtMs - askedAtMs >= this.#expiryMs) return null;
    const isFirst = this.#provedAtMs === null;
    this.#provedAtMs = askedAtMs;
    if (this.#isHeld) return null;
    this.#isHeld = true;
    return isFirst ? "held" : "held again";
  }

  /** Find out whether doubt begins now: at the latest at `doubtAtMs`, and before each renewal. */
  check(nowMs: number): LeaseDoubt | null {
    const { doubtAtMs } = this;
    return doubtAtMs !== null && nowMs >= doubtAtMs ? this.lost() : null;
  }

  /** The lease turned out to be another's, or free. Null when it was not held anyway. */
  lost(): LeaseDoubt | null {
    if (!this.#isHeld || this.#provedAtMs === null) return null;
    this.#isHeld = false;
    return { sinceMs: this.#provedAtMs };
  }
}
