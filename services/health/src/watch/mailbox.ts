import { type Clock, WakeUp } from "@rollcall/process";

/** The changes since a mailbox was last emptied. */
export interface Mail<T> {
  /** The latest item of each id. */
  readonly items: readonly T[];
  /** Ids that were dropped and not put again. */
  readonly dropped: readonly string[];
}

/**
 * Collects changes for one watcher: the latest item of each id. A slow watcher misses intermediate states, and
 * nothing accumulates.
 */
export class Mailbox<T> {
  readonly #items = new Map<string, T>();
  readonly #dropped = new Set<string>();
  readonly #wakeUp = new WakeUp();

  /** The waiting item of this id. */
  peek(id: string): T | undefined {
    return this.#items.get(id);
  }

  /** Put an item, replacing an older one with the same id. */
  put(id: string, item: T): void {
    this.#dropped.delete(id);
    this.#items.set(id, item);
    this.#wakeUp.call();
  }

  /** Report that an id is gone. */
  drop(id: string): void {
    this.#items.delete(id);
    this.#dropped.add(id);
    this.#wakeUp.call();
  }

  /** Wake the reader without adding anything: end its current rest(), or else its next one. */
  touch(): void {
    this.#wakeUp.call();
  }

  /**
   * Take up to `most` of the oldest items, and all dropped ids. If items are left, the next rest ends immediately.
   */
  take(most: number): Mail<T> {
    const taken = [...this.#items].slice(0, most);
    for (const [id] of taken) this.#items.delete(id);
    const mail = { items: taken.map(([, item]) => item), dropped: [...this.#dropped] };
    this.#dropped.clear();
    if (this.#items.size > 0) this.#wakeUp.call();
    return mail;
  }

  /** Wait for a change, at most `ms` milliseconds. Rejects with the signal's reason. */
  async rest(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    await this.#wakeUp.rest(clock, { atMostMs: ms }, signal);
  }
}
