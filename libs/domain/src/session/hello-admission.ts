import { type BucketLimits, fullBucket, type TokenBucket, takeOne } from "../limits/token-bucket.ts";
import { reconnectWindow } from "./pacing.ts";

/** Whether a Hello is taken now, or after which time it is its agent's turn. */
export type HelloVerdict = { readonly ok: true } | { readonly ok: false; readonly retryAfterMs: number };

/** The pace is what was seen in about so long: a batch counts by the time that it took. */
const PACE_OVER_MS = 2_000;
/** How far one batch moves it at most: one that waited for the record is no new pace. */
const MOST_OF_LAST = 0.5;

/** The longest time for which an agent is sent away. */
const LONGEST_RETRY_MS = 60_000;

/**
 * Admits a limited number of hellos a second, after a burst of as many, and gives those that it turns away their turns
 * one after the other, as fast as this replica was seen to welcome them: when a fleet returns the others have many to
 * send away, and as many of theirs come here. All times are monotonic milliseconds.
 */
export class HelloAdmission {
  readonly #limits: BucketLimits;
  #bucket: TokenBucket;
  /** How many were sent away and are still to come, as of when it was last looked at. */
  #backlog = 0;
  #backlogAtMs: number;
  /** Hellos a second that this replica takes in while more wait; at most the limit, which it begins with. */
  #pacePerSecond: number;

  constructor(hellosPerSecond: number, nowMs: number) {
    this.#limits = { perSecond: hellosPerSecond, burst: hellosPerSecond };
    this.#bucket = fullBucket(this.#limits, nowMs);
    this.#pacePerSecond = hellosPerSecond;
    this.#backlogAtMs = nowMs;
  }

  /** A Hello has come. */
  ask(nowMs: number): HelloVerdict {
    const taken = takeOne(this.#bucket, this.#limits, nowMs);
    if (taken === null) return { ok: false, retryAfterMs: this.turnAway(nowMs) };
    this.#bucket = taken;
    return { ok: true };
  }

  /** So many hellos were taken in within this time, while there was no lack of them. */
  tookIn(hellos: number, tookMs: number): void {
    if (tookMs <= 0) return;
    const perSecond = Math.min(this.#limits.perSecond, (hellos * 1000) / tookMs);
    const share = Math.min(MOST_OF_LAST, 1 - Math.exp(-tookMs / PACE_OVER_MS));
    this.#pacePerSecond += (perSecond - this.#pacePerSecond) * share;
  }

  /** Send an agent away for whatever reason. Answers the time after which it may come back. */
  turnAway(nowMs: number): number {
    const hellosPerSecond = this.#pacePerSecond;
    const elapsedMs = Math.max(0, nowMs - this.#backlogAtMs);
    const waiting = Math.max(0, this.#backlog - (elapsedMs * hellosPerSecond) / 1000);
    const isCounted = waiting * 1000 < LONGEST_RETRY_MS * hellosPerSecond;
    // Those whose turn is later than the longest time come again before it: they count then.
    this.#backlog = waiting + (isCounted ? 1 : 0);
    this.#backlogAtMs = Math.max(this.#backlogAtMs, nowMs);
    const windowMs = reconnectWindow({ agents: this.#backlog, replicas: 1, hellosPerSecond });
    return Math.min(LONGEST_RETRY_MS, windowMs);
  }
}
