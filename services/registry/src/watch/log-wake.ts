import { NO_EVENT } from "@rollcall/domain";
import type { Clock } from "@rollcall/process";
import type { EventFeed, Following } from "@rollcall/store";
import { Crowd, type Sleeper } from "./crowd.ts";
import type { WatchLimits } from "./watch-limits.ts";

/** The inputs for waking watchers. */
export interface LogWakeOptions {
  /** The process's event feed, which the first watcher starts if needed. */
  readonly feed: EventFeed;
  readonly clock: Clock;
  readonly limits: Pick<WatchLimits, "bookmarkMs">;
}

/**
 * The minimum time between two reads of the log for watchers. Events that are committed in between are read
 * together.
 */
export const GATHER_MS = 20;

/** Wakes all watchers when the log grows, without reading events. */
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

  /** The newest revision at the time when watchers were last woken. */
  get position(): bigint {
    return this.#following?.position ?? this.#options.feed.position;
  }

  /** The history of the log that `position` belongs to. */
  get logId(): string {
    return this.#options.feed.logId;
  }

  /**
   * Start, unless already started. Rejects with the store's error when the store cannot be reached, or with the
   * signal's reason.
   */
  async ready(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await orAborted(this.#options.feed.start(), signal);
    if (this.#isTicking) return;
    this.#isTicking = true;
    void this.#tick();
  }

  /** Wake a watcher whenever the log grows, and periodically. Returns an unsubscribe function. */
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

  /** Stop, and wake all watchers one last time. */
  close(): void {
    this.#ending.abort(new Error("watches are closed"));
    this.#following?.leave();
    this.#following = null;
    this.#crowd.wakeAtOnce();
  }

  /** Wakes all watchers periodically, so that they send bookmarks and check whether the log was replaced. */
  async #tick(): Promise<void> {
    const { clock, limits } = this.#options;
    const { signal } = this.#ending;
    while (!signal.aborted) {
      // Ignore the rejection, because sleep() rejects only when watches are closed.
      await clock.sleep(limits.bookmarkMs / 4, signal).catch(() => {});
      this.#crowd.wake();
    }
  }
}

/** Wait for a shared promise until the signal aborts; then reject with its reason. */
export async function orAborted<T>(shared: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    shared.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
