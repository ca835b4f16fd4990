/** When a loss of streams counts as a sign that the observer itself has a problem. */
export interface StreamLossLimits {
  /** Doubt begins if more than this fraction of streams breaks together or is silent at the same time. */
  readonly part: number;
  /** Streams that break within this time count as broken together. */
  readonly withinMs: number;
  /** Minimum number of streams for a doubt. With fewer, chance or the loss of a single rack can be the cause. */
  readonly leastStreams: number;
  /**
   * Minimum time between two doubts. If a loss continues after the first doubt, it is real, or another replica must act
   * on it.
   */
  readonly restMs: number;
}

export const DEFAULT_STREAM_LOSS_LIMITS: StreamLossLimits = {
  part: 0.5,
  withinMs: 1_000,
  leastStreams: 20,
  restMs: 600_000,
};

/**
 * Detects that an observer has lost a large part of its streams within a short time. The likely cause is the
 * observer's own network, so the observer then doubts itself, but only once in a while. If a whole zone is lost, this
 * delays the declaration of its nodes only once.
 */
export class StreamLoss {
  readonly #limits: StreamLossLimits;
  #windowFromMs = Number.NEGATIVE_INFINITY;
  /** How many streams were open when the window began. */
  #streams = 0;
  #broken = 0;
  #doubtedAtMs = Number.NEGATIVE_INFINITY;

  constructor(limits: StreamLossLimits) {
    this.#limits = limits;
  }

  /** Whether a doubt can begin now. If not, nothing needs to be counted. */
  mayDoubt(nowMs: number): boolean {
    return nowMs - this.#doubtedAtMs >= this.#limits.restMs;
  }

  /**
   * Record that a stream broke without this side closing it. `streams` is the number of streams still open. Returns
   * whether a doubt begins.
   */
  onBroken(nowMs: number, streams: number): boolean {
    if (nowMs - this.#windowFromMs >= this.#limits.withinMs) {
      this.#windowFromMs = nowMs;
      this.#streams = streams + 1;
      this.#broken = 0;
    }
    this.#broken += 1;
    return this.#evaluate(nowMs, this.#broken, this.#streams);
  }

  /**
   * Record that a node is about to be declared unhealthy. `silent` is the number of open streams that have been silent
   * for more than half of their threshold. Returns whether a doubt begins.
   */
  onSilent(nowMs: number, silent: number, streams: number): boolean {
    return this.#evaluate(nowMs, silent, streams);
  }

  #evaluate(nowMs: number, lost: number, streams: number): boolean {
    const { part, leastStreams } = this.#limits;
    if (!this.mayDoubt(nowMs) || streams < leastStreams || lost <= streams * part) return false;
    this.#doubtedAtMs = nowMs;
    return true;
  }
}
