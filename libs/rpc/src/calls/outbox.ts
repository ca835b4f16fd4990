import { refuse } from "@rollcall/errors";

/**
 * The bounded queue between whatever produces the frames of one stream and the loop that sends them.
 * A peer that does not read is disconnected rather than buffered: at the limit the outbox fails.
 * It is read once, by one reader.
 */
export class Outbox<T> implements AsyncIterable<T> {
  readonly #limit: number;
  readonly #items: T[] = [];
  #end: { readonly error: unknown } | "closed" | null = null;
  #wake: (() => void) | null = null;

  /** `limit`: how many frames may wait; one more fails the outbox with RESOURCE_EXHAUSTED, PEER_TOO_SLOW. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many frames wait. */
  get size(): number {
    return this.#items.length;
  }

  /** Whether it was closed or has failed; later frames are dropped. */
  get ended(): boolean {
    return this.#end !== null;
  }

  /** Add a frame. False when it was not taken: the outbox has ended, or is full and fails with this very push. */
  push(item: T): boolean {
    if (this.#end !== null) return false;
    if (this.#items.length >= this.#limit) {
      this.fail(
        refuse("PEER_TOO_SLOW", "the peer does not read what it is sent", {
          metadata: { limit: String(this.#limit) },
        }),
      );
      return false;
    }
    this.#items.push(item);
    this.#signal();
    return true;
  }

  /** End after the frames that already wait have been read. */
  close(): void {
    this.#end ??= "closed";
    this.#signal();
  }

  /** End at once: what waits is dropped and the reader gets the error. Nothing happens after an earlier end. */
  fail(error: unknown): void {
    if (this.#end !== null) return;
    this.#end = { error };
    this.#items.length = 0;
    this.#signal();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    try {
      for (;;) {
        // One at a time: frames taken out early would wait beside the limit and survive a failure.
        while (this.#items.length > 0) yield this.#items.shift() as T;
        if (this.#end === "closed") return;
        if (this.#end !== null) throw this.#end.error;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      // The reader left: nothing that is pushed from now on arrives.
      this.#end ??= "closed";
      this.#items.length = 0;
    }
  }

  #signal(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}
