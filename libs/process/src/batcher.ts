import { refuse } from "@rollcall/errors";
import { type Clock, systemClock } from "./clock.ts";

export interface BatcherOptions<I, O> {
  /** Do one batch; the answers in the order of the items. To throw fails the items of this batch and no others. */
  run(items: readonly I[]): Promise<readonly O[]>;
  /** Most items of one run. */
  readonly maxItems: number;
  /** How long an item may wait for company while no run keeps it waiting anyway. 0: only for those of the same turn. */
  readonly maxWaitMs: number;
  /**
   * Shortest time between the beginnings of two runs that have not enough items: those that come one by one share
   * them. Default 0.
   */
  readonly spacingMs?: number;
  /**
   * The same where several come at a time: the spacing is multiplied by how many the last run had, up to here, so that
   * the more come the more share a run. One that comes after a run of one waits for `spacingMs` at most, the first
   * after a larger run for this at most. Default `spacingMs`.
   */
  readonly longestSpacingMs?: number;
  /** So many items begin a run without spacing: sharing it with more would save little. Default `maxItems`. */
  readonly enoughItems?: number;
  /** Most items that wait for a run; one more is refused with RESOURCE_EXHAUSTED, OVERLOADED. */
  readonly maxQueued: number;
  /** Most runs at a time. Default 1. */
  readonly maxRunning?: number;
  /** What a refused caller is told to wait. Default 1 s. */
  readonly retryAfterMs?: number;
  readonly clock?: Clock;
}

interface Waiting<I, O> {
  readonly item: I;
  readonly resolve: (answer: O) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Gathers single items into batches, so that a storm costs few round trips. While all runs are busy, items gather
 * by themselves; a batch starts when it has enough items, when its oldest item has waited long enough, or when a run
 * ends.
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

  /** How many items wait for a run. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Hand in an item and get its answer. Rejects with the error of its run, or as overloaded, or after close(). */
  submit(item: I): Promise<O> {
    if (this.#closed) {
      return Promise.reject(refuse("SERVER_SHUTTING_DOWN", "the server is ending"));
    }
    const { maxQueued, retryAfterMs = 1_000 } = this.#options;
    if (this.#queue.length >= maxQueued) {
      const metadata = { limit: String(maxQueued) };
      return Promise.reject(refuse("OVERLOADED", "too many requests wait already", { metadata, retryAfterMs }));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  /** Refuse further items, run those that wait, and resolve when all have their results. */
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
    // The sleep rejects when the window was opened early; then there is nothing left to do.
    const { maxWaitMs, spacingMs = 0, longestSpacingMs = spacingMs } = this.#options;
    const apartMs = Math.min(longestSpacingMs, spacingMs * Math.max(1, this.#lastRunItems));
    const spacedMs = this.#lastRunAtMs + apartMs - this.#clock.nowMs();
    this.#clock.sleep(Math.max(maxWaitMs, spacedMs), window.signal).then(open, () => {});
  }

  /** Start as many runs as there may be. */
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

  /** Items that came during the run have waited long enough: no further window for them, unless runs are spaced. */
  #afterRun(): void {
    const isSpaced = (this.#options.spacingMs ?? 0) > 0 && !this.#closed;
    if (this.#queue.length > 0 && isSpaced) this.#schedule();
    else if (this.#queue.length > 0) this.#openWindow();
    else if (this.#running === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}

/** Take up to so many out of a set, those first that were added first. */
export function takeFrom<T>(from: Set<T>, most: number): readonly T[] {
  const taken: T[] = [];
  for (const item of from) {
    if (taken.length === most) break;
    from.delete(item);
    taken.push(item);
  }
  return taken;
}
