/** The time between renewals of a lease, and its lifetime without renewal. */
export interface LeaseTiming {
  /** Time between two renewals. */
  readonly renewEveryMs: number;
  /**
   * How long a lease lasts without a renewal. After this time, the holder doubts its lease, and other processes end it.
   * Must be several times `renewEveryMs`, so that one slow response does not look like a failure.
   */
  readonly expiryMs: number;
}

export const LEASE_TIMING: LeaseTiming = { renewEveryMs: 2_000, expiryMs: 10_000 };

/** A period that starts at `sinceMs`, in which the lease may have expired or belong to another process. */
export interface LeaseDoubt {
  readonly sinceMs: number;
}

/**
 * Decides whether the holder of a lease can rely on it, by the holder's own monotonic clock. A renewal increases the
 * lease's counter at some time after the request is sent. So no other process ends the lease until `expiryMs` after the
 * request. The time of the response proves nothing.
 */
export class LeaseHolding {
  readonly #expiryMs: number;
  #provedAtMs: number | null = null;
  #isHeld = false;

  constructor({ expiryMs }: Pick<LeaseTiming, "expiryMs">) {
    this.#expiryMs = expiryMs;
  }

  /** Whether the holder can rely on the lease. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** When doubt begins unless a renewal succeeds first; null while the lease is not held. */
  get doubtAtMs(): number | null {
    return this.#isHeld && this.#provedAtMs !== null ? this.#provedAtMs + this.#expiryMs : null;
  }

  /**
   * Record that the lease was acquired or renewed. A response that took `expiryMs` or longer has no effect, because it
   * does not prove that the lease is still held.
   *
   * @returns "held" if the lease is held for the first time, "held again" after doubt; null if nothing changes.
   */
  proved(askedAtMs: number, answeredAtMs: number): "held" | "held again" | null {
    if (answeredAtMs - askedAtMs >= this.#expiryMs) return null;
    const isFirst = this.#provedAtMs === null;
    this.#provedAtMs = askedAtMs;
    if (this.#isHeld) return null;
    this.#isHeld = true;
    return isFirst ? "held" : "held again";
  }

  /** Check whether doubt begins now. Must be called at `doubtAtMs` at the latest, and before each renewal. */
  check(nowMs: number): LeaseDoubt | null {
    const { doubtAtMs } = this;
    return doubtAtMs !== null && nowMs >= doubtAtMs ? this.lost() : null;
  }

  /** Record that the lease is free or belongs to another process. Returns null if the lease was not held. */
  lost(): LeaseDoubt | null {
    if (!this.#isHeld || this.#provedAtMs === null) return null;
    this.#isHeld = false;
    return { sinceMs: this.#provedAtMs };
  }
}
