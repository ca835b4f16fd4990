/** When the loss of streams looks like trouble of the observer's own. */
export interface StreamLossLimits {
  /** More than this part of the streams, broken together or silent at once. */
  readonly part: number;
  /** Streams that break within this time break together. */
  readonly withinMs: number;
  /** With fewer streams, chance and a single rack look the same. */
  readonly leastStreams: number;
  /** After a doubt no other one begins for so long: what goes on is real, or others have to deal with it. */
  readonly restMs: number;
}

export const DEFAULT_STREAM_LOSS_LIMITS: StreamLossLimits = {
  part: 0.5,
  withinMs: 1_000,
  leastStreams: 20,
  restMs: 600_000,
};

/**
 * Tell when an observer that runs well has lost so many of its streams at once that its own network is the likelier
 * cause than theirs. It then doubts itself once, and not again for a while: a zone that is really lost is declared late
 * by one extension only.
 */
export class StreamLoss {
  readonly #limits: StreamLossLimits;
  #windowFromMs = Number.NEGATIVE_INFINITY;
  /** Open when the window began. */
  #streams = 0;
  #broken = 0;
  #doubtedAtMs = Number.NEGATIVE_INFINITY;

  constructor(limits: StreamLossLimits) {
    this.#limits = limits;
  }

  /** Whether a doubt could begin now: if not, no count is needed. */
  mayDoubt(nowMs: number): boolean {
    return nowMs - this.#doubtedAtMs >= this.#limits.restMs;
  }

  /** A stream has broken that this side did not end. `streams` are open without it. Answers whether a doubt begins. */
  onBroken(nowMs: number, streams: number): boolean {
    if (nowMs - this.#windowFromMs >= this.#limits.withinMs) {
      this.#windowFromMs = nowMs;
      this.#streams = streams + 1;
      this.#broken = 0;
    }
    this.#broken += 1;
    return this.#judge(nowMs, this.#broken, this.#streams);
  }

  /**
   * A node is about to be declared. `silent` of the open streams have been silent beyond half of their time. Answers
   * whether a doubt begins.
   */
  onSilent(nowMs: number, silent: number, streams: number): boolean {
    return this.#judge(nowMs, silent, streams);
  }

  #judge(nowMs: number, lost: number, streams: number): boolean {
    const { part, leastStreams } = this.#limits;
    if (!this.mayDoubt(nowMs) || streams < leastStreams || lost <= streams * part) return false;
    this.#doubtedAtMs = nowMs;
    return true;
  }
}
