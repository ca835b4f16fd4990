import { refuse } from "@rollcall/errors";
import { type Clock, WakeUp } from "@rollcall/process";

/**
 * Changes that were not sent to a watcher yet: each item once, in its latest version. The reader takes them when it
 * is ready.
 */
export class PendingChanges<T> {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #wakeUp = new WakeUp();
  #items = new Map<string, T>();
  #isTooSlow = false;

  /** @param most maximum number of waiting changes. A watcher that is further behind is disconnected. */
  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Record a change. It replaces an earlier change with the same key. */
  put(key: string, item: T): void {
    if (this.#isTooSlow) return;
    this.#items.set(key, item);
    if (this.#items.size > this.#most) {
      this.#isTooSlow = true;
      this.#items.clear();
    }
    this.#wakeUp.call();
  }

  /**
   * Wait for changes and take them all. Returns none if there are none within `atMostMs`. Throws WATCHER_TOO_SLOW
   * when too many were waiting, and the signal's reason when it aborts.
   */
  async take(atMostMs: number, signal: AbortSignal): Promise<readonly T[]> {
    if (this.#items.size === 0 && !this.#isTooSlow) await this.#wakeUp.rest(this.#clock, { atMostMs }, signal);
    signal.throwIfAborted();
    if (this.#isTooSlow) throw tooSlow(this.#most);
    const items = [...this.#items.values()];
    this.#items = new Map();
    return items;
  }
}

function tooSlow(most: number) {
  const text = `more than ${most} changes were waiting to be read; open the watch again`;
  return refuse("WATCHER_TOO_SLOW", text, { metadata: { most: String(most) } });
}
