import { type Clock, WakeUp } from "@rollcall/process";

/** What was put into a mailbox since it was last emptied. */
export interface Mail<T> {
  /** The latest of each id. */
  readonly items: readonly T[];
  /** Ids that were dropped and not put again since. */
  readonly dropped: readonly string[];
}

/** News for one watcher: the latest item of each id. A slow watcher skips what is between, and nothing accumulates. */
export class Mailbox<T> {
  readonly #items = new Map<string, T>();
  readonly #dropped = new Set<string>();
  readonly #wakeUp = new WakeUp();

  /** The waiting item of this id. */
  peek(id: string): T | undefined {
    return this.#items.get(id);
  }

  /** Put an item, in place of an older one with the same id. */
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

  /** End the current rest, or else the next one, without news. */
  touch(): void {
    this.#wakeUp.call();
  }

  /** Take the oldest news, `most` items at most; if some are left, the next rest ends at once. */
  take(most: number): Mail<T> {
    const taken = [...this.#items].slice(0, most);
    for (const [id] of taken) this.#items.delete(id);
    const mail = { items: taken.map(([, item]) => item), dropped: [...this.#dropped] };
    this.#dropped.clear();
    if (this.#items.size > 0) this.#wakeUp.call();
    return mail;
  }

  /** Wait for news, `ms` at most. Rejects with the signal's reason. */
  async rest(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    await this.#wakeUp.rest(clock, { atMostMs: ms }, signal);
  }
}
