import { NO_EVENT } from "@rollcall/domain";
import type { Clock } from "@rollcall/process";
import type { EventFeed, Following } from "@rollcall/store";
import { Crowd, type Sleeper } from "./crowd.ts";
import type { WatchLimits } from "./watch-limits.ts";

/** What waking watchers needs. */
export interface LogWakeOptions {
  /** The process's feed, which the first watcher starts where it has not been started. */
  readonly feed: EventFeed;
  readonly clock: Clock;
  readonly limits: Pick<WatchLimits, "bookmarkMs">;
}

/** Between two reads of the log for watchers: what is committed meanwhile goes along. */
export const GATHER_MS = 20;

/** Wakes all that wait for the log to grow. It reads no event. */
export class LogWake {
  readonly #options: LogWakeOptions;
  readonly #ending = new AbortController();
  readonly #crowd: Crowd;
  #following: Following | null = null;
  #isTicking = false;

  constructor(options: LogWakeOptions) {
    this.#options = options;
    this.#crowd = new Crowd(options.clock, this.#ending.signal);
  }

  /** How far the log was when watchers were last woken. */
  get position(): bigint {
    return this.#following?.position ?? this.#options.feed.position;
  }

  /** The history of the log to which `position` belongs. */
  get logId(): string {
    return this.#options.feed.logId;
  }

  /** Begin unless it has begun. Rejects with the store's error when that cannot be reached, or the signal's reason. */
  async ready(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await orAborted(this.#options.feed.start(), signal);
    if (this.#isTicking) return;
    this.#isTicking = true;
    void this.#tick();
  }

  /** Wake a watcher whenever the log has grown, and now and then. Returns an unsubscribe function. */
  join(sleeper: Sleeper): () => void {
    const leave = this.#crowd.join(sleeper);
    this.#following ??= this.#options.feed.follow({
      name: "log_wake",
      interest: NO_EVENT,
      gatherMs: GATHER_MS,
      deliver: () => this.#crowd.wake(),
    });
    return () => {
      leave();
      if (this.#crowd.size > 0) return;
      this.#following?.leave();
      this.#following = null;
    };
  }

  /** Stop, and wake all watchers a last time. */
  close(): void {
    this.#ending.abort(new Error("watches are closed"));
    this.#following?.leave();
    this.#following = null;
    this.#crowd.wakeAtOnce();
  }

  /** Wakes all watchers now and then: for bookmarks, and to see whether the log was replaced. */
  async #tick(): Promise<void> {
    const { clock, limits } = this.#options;
    const { signal } = this.#ending;
    while (!signal.aborted) {
      // It rejects only when watches are closed.
      await clock.sleep(limits.bookmarkMs / 4, signal).catch(() => {});
      this.#crowd.wake();
    }
  }
}

/** Wait for what others wait for too, until the signal aborts; rejects with its reason then. */
export async function orAborted<T>(shared: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    shared.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
