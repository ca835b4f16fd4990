import { refuse } from "@rollcall/errors";
import { type Clock, WakeUp } from "@rollcall/process";

/** What a watcher has not been sent yet: each thing once, in its newest form. Its reader takes it when it is ready. */
export class PendingChanges<T> {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #wakeUp = new WakeUp();
  #items = new Map<string, T>();
  #isTooSlow = false;

  /** @param most things that may wait; a watcher that is so far behind is cut off. */
  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Note a change. It replaces an earlier one of the same key. */
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
   * Wait for changes and take them all; none when `atMostMs` passes without. Throws WATCHER_TOO_SLOW when too much has
   * waited, and the signal's reason.
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
  const text = `more than ${most} changes waited to be read: open the watch again`;
  return refuse("WATCHER_TOO_SLOW", text, { metadata: { most: String(most) } });
}
