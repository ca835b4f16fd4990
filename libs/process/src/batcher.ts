import { refuse } from "@rollcall/errors";
import { type Clock, systemClock } from "./clock.ts";

export interface BatcherOptions<I, O> {
  /**
   * Process one batch. Returns the results in the order of the items. An exception fails only the items of this batch.
   */
  run(items: readonly I[]): Promise<readonly O[]>;
  /** Maximum items per run. */
  readonly maxItems: number;
  /**
   * How long an item can wait for others while no run is in progress. With 0, only items of the same event loop tick
   * share a run.
   */
  readonly maxWaitMs: number;
  /**
   * Minimum time between the starts of two runs, unless `enoughItems` are waiting, so that items that arrive one by one
   * share a run. Default 0.
   */
  readonly spacingMs?: number;
  /**
   * Upper bound of the adaptive spacing. The spacing is `spacingMs` multiplied by the size of the last run, so that
   * higher load makes larger batches. After a run of one item, the next run waits at most `spacingMs`; after a larger
   * run, at most `longestSpacingMs`. Default `spacingMs`.
   */
  readonly longestSpacingMs?: number;
  /** Number of items that start a run without spacing, because a larger batch would save little. Default `maxItems`. */
  readonly enoughItems?: number;
  /** Maximum number of waiting items. More are refused with RESOURCE_EXHAUSTED and the reason OVERLOADED. */
  readonly maxQueued: number;
  /** Maximum concurrent runs. Default 1. */
  readonly maxRunning?: number;
  /** The retry delay for refused callers. Default 1 s. */
  readonly retryAfterMs?: number;
  readonly clock?: Clock;
}

interface Waiting<I, O> {
  readonly item: I;
  readonly resolve: (answer: O) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Collects single items into batches, so that a burst needs few round trips. While all runs are busy, items accumulate.
 * A batch starts when it has enough items, when its oldest item has waited long enough, or when a run ends.
 */
export class Batcher<I, O> {
  readonly #options: BatcherOptions<I, O>;
  readonly #clock: Clock;
  #queue: Waiting<I, O>[] = [];
  #running = 0;
  #lastRunAtMs = Number.NEGATIVE_INFINITY;
  #lastRunItems = 0;
  #window: AbortController | null = null;
  #closed = false;
  #onIdle: (() => void)[] = [];

  constructor(options: BatcherOptions<I, O>) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** The number of waiting items. */
  get queued(): number {
    return this.#queue.length;
  }

  /**
   * Submit an item and wait for its result. Rejects with the error of the item's run, when there are too many waiting
   * items, or after close().
   */
  submit(item: I): Promise<O> {
    if (this.#closed) {
      return Promise.reject(refuse("SERVER_SHUTTING_DOWN", "the server is shutting down"));
    }
    const { maxQueued, retryAfterMs = 1_000 } = this.#options;
    if (this.#queue.length >= maxQueued) {
      const metadata = { limit: String(maxQueued) };
      return Promise.reject(refuse("OVERLOADED", "too many requests are waiting", { metadata, retryAfterMs }));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  /** Refuse further items, and run the waiting ones. Resolves when all items have their results. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#openWindow();
    if (this.#running === 0 && this.#queue.length === 0) return;
    await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #schedule(): void {
    if (this.#running >= (this.#options.maxRunning ?? 1)) return;
    const { maxItems, enoughItems = maxItems } = this.#options;
    if (this.#queue.length >= enoughItems) this.#openWindow();
    else if (this.#window === null) this.#waitForCompany();
  }

  #waitForCompany(): void {
    const window = new AbortController();
    this.#window = window;
    const open = () => {
      if (this.#window === window) this.#openWindow();
    };
    // Ignore a rejection of the sleep, which means that the window was opened early.
    const { maxWaitMs, spacingMs = 0, longestSpacingMs = spacingMs } = this.#options;
    const apartMs = Math.min(longestSpacingMs, spacingMs * Math.max(1, this.#lastRunItems));
    const spacedMs = this.#lastRunAtMs + apartMs - this.#clock.nowMs();
    this.#clock.sleep(Math.max(maxWaitMs, spacedMs), window.signal).then(open, () => {});
  }

  /** Start as many runs as allowed. */
  #openWindow(): void {
    this.#window?.abort();
    this.#window = null;
    while (this.#queue.length > 0 && this.#running < (this.#options.maxRunning ?? 1)) {
      void this.#runBatch(this.#queue.splice(0, this.#options.maxItems));
    }
  }

  async #runBatch(batch: readonly Waiting<I, O>[]): Promise<void> {
    this.#running += 1;
    this.#lastRunAtMs = this.#clock.nowMs();
    this.#lastRunItems = batch.length;
    try {
      const answers = await this.#options.run(batch.map((waiting) => waiting.item));
      if (answers.length !== batch.length) {
        throw new Error(`a batch of ${batch.length} items got ${answers.length} answers`);
      }
      for (const [index, waiting] of batch.entries()) waiting.resolve(answers[index] as O);
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    } finally {
      this.#running -= 1;
      this.#afterRun();
    }
  }

  /** Start the next run. Items that arrived during the last run have waited long enough, unless runs are spaced. */
  #afterRun(): void {
    const isSpaced = (this.#options.spacingMs ?? 0) > 0 && !this.#closed;
    if (this.#queue.length > 0 && isSpaced) this.#schedule();
    else if (this.#queue.length > 0) this.#openWindow();
    else if (this.#running === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}

/** Remove and return up to `most` items of a set, oldest first. */
export function takeFrom<T>(from: Set<T>, most: number): readonly T[] {
  const taken: T[] = [];
  for (const item of from) {
    if (taken.length === most) break;
    from.delete(item);
    taken.push(item);
  }
  return taken;
}
