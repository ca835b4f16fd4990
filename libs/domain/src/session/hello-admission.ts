import { type BucketLimits, fullBucket, type TokenBucket, takeOne } from "../limits/token-bucket.ts";
import { reconnectWindow } from "./pacing.ts";

/** Whether a Hello is taken now, or after which time it is its agent's turn. */
export type HelloVerdict = { readonly ok: true } | { readonly ok: false; readonly retryAfterMs: number };

/** How far one batch moves what is known of the pace: a slow one is no new pace yet. */
const SHARE_OF_LAST = 0.25;

/** The longest time for which an agent is sent away. */
const LONGEST_RETRY_MS = 60_000;

/**
 * Lets so many hellos in within a second, after a burst of as many, and gives those that it turns away their turns one
 * after the other: as fast as all replicas together can welcome them, each no faster than this one was seen to. All
 * times are monotonic milliseconds.
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

  /** A Hello has come. `replicas` are all that take agents in, this one among them. */
  ask(nowMs: number, replicas: number): HelloVerdict {
    const taken = takeOne(this.#bucket, this.#limits, nowMs);
    if (taken === null) return { ok: false, retryAfterMs: this.turnAway(nowMs, replicas) };
    this.#bucket = taken;
    return { ok: true };
  }

  /** So many hellos were taken in within this time, while there was no lack of them. */
  tookIn(hellos: number, tookMs: number): void {
    if (tookMs <= 0) return;
    const perSecond = Math.min(this.#limits.perSecond, (hellos * 1000) / tookMs);
    this.#pacePerSecond += (perSecond - this.#pacePerSecond) * SHARE_OF_LAST;
  }

  /** Send an agent away for whatever reason. Answers the time after which it may come back. */
  turnAway(nowMs: number, replicas: number): number {
    const perSecond = this.#pacePerSecond * Math.max(1, replicas);
    const elapsedMs = Math.max(0, nowMs - this.#backlogAtMs);
    this.#backlog = Math.max(0, this.#backlog - (elapsedMs * perSecond) / 1000) + 1;
    this.#backlogAtMs = Math.max(this.#backlogAtMs, nowMs);
    const hellosPerSecond = this.#pacePerSecond;
    const windowMs = reconnectWindow({ agents: this.#backlog, replicas, hellosPerSecond });
    return Math.min(LONGEST_RETRY_MS, windowMs);
  }
}
