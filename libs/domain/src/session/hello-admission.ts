import { type BucketLimits, fullBucket, type TokenBucket, takeOne } from "../limits/token-bucket.ts";
import { reconnectWindow } from "./pacing.ts";

/** Whether a Hello is admitted now, or else when its agent can retry. */
export type HelloDecision = { readonly ok: true } | { readonly ok: false; readonly retryAfterMs: number };

/** The time constant of the average pace, in milliseconds. Longer batches have more weight. */
const PACE_OVER_MS = 2_000;
/**
 * The maximum weight of one batch in the average. A single batch must not determine the pace, because it may have
 * waited for the store.
 */
const MOST_OF_LAST = 0.5;

/** The longest retry delay of an agent. */
const LONGEST_RETRY_MS = 60_000;

/**
 * Admits a limited number of hellos per second, after an initial burst of the same size. Agents that are turned away
 * get successive retry times, at the pace at which this replica has recently welcomed agents. Only this replica's own
 * pace counts: when a whole cluster returns, every replica turns many agents away, and each replica gains about as
 * many agents as it loses. All times are monotonic milliseconds.
 */
export class HelloAdmission {
  readonly #limits: BucketLimits;
  #bucket: TokenBucket;
  /** How many agents were waiting to return at `#backlogAtMs`. */
  #backlog = 0;
  #backlogAtMs: number;
  /** How many hellos this replica processes per second under load. Starts at the limit and never exceeds it. */
  #pacePerSecond: number;

  constructor(hellosPerSecond: number, nowMs: number) {
    this.#limits = { perSecond: hellosPerSecond, burst: hellosPerSecond };
    this.#bucket = fullBucket(this.#limits, nowMs);
    this.#pacePerSecond = hellosPerSecond;
    this.#backlogAtMs = nowMs;
  }

  /** Ask for admission of a Hello. */
  ask(nowMs: number): HelloDecision {
    const taken = takeOne(this.#bucket, this.#limits, nowMs);
    if (taken === null) return { ok: false, retryAfterMs: this.turnAway(nowMs) };
    this.#bucket = taken;
    return { ok: true };
  }

  /** Record that a batch of hellos was processed within this time while more were waiting. */
  tookIn(hellos: number, tookMs: number): void {
    if (tookMs <= 0) return;
    const perSecond = Math.min(this.#limits.perSecond, (hellos * 1000) / tookMs);
    const share = Math.min(MOST_OF_LAST, 1 - Math.exp(-tookMs / PACE_OVER_MS));
    this.#pacePerSecond += (perSecond - this.#pacePerSecond) * share;
  }

  /** Turn an agent away for any reason. Returns the time after which it can retry. */
  turnAway(nowMs: number): number {
    const hellosPerSecond = this.#pacePerSecond;
    const elapsedMs = Math.max(0, nowMs - this.#backlogAtMs);
    const waiting = Math.max(0, this.#backlog - (elapsedMs * hellosPerSecond) / 1000);
    const isCounted = waiting * 1000 < LONGEST_RETRY_MS * hellosPerSecond;
    // Do not count an agent whose turn would be after the longest retry time: it returns before its turn, and is
    // counted then.
    this.#backlog = waiting + (isCounted ? 1 : 0);
    this.#backlogAtMs = Math.max(this.#backlogAtMs, nowMs);
    const windowMs = reconnectWindow({ agents: this.#backlog, replicas: 1, hellosPerSecond });
    return Math.min(LONGEST_RETRY_MS, windowMs);
  }
}
