import { refuse } from "@rollcall/errors";

/**
 * A bounded queue between the producer of a stream's frames and the loop that sends them. At the limit the outbox
 * fails, which disconnects a peer that does not read. An outbox has one reader, which can iterate over it once.
 */
export class Outbox<T> implements AsyncIterable<T> {
  readonly #limit: number;
  readonly #items: T[] = [];
  #end: { readonly error: unknown } | "closed" | null = null;
  #wake: (() => void) | null = null;

  /**
   * @param limit the maximum number of frames that can wait. Adding another frame fails the outbox with
   *   RESOURCE_EXHAUSTED, PEER_TOO_SLOW.
   */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many frames wait to be sent. */
  get size(): number {
    return this.#items.length;
  }

  /** Whether the outbox was closed or has failed. Later frames are dropped. */
  get ended(): boolean {
    return this.#end !== null;
  }

  /** Add a frame. Returns false if the outbox has ended, or if it is full and fails now. */
  push(item: T): boolean {
    if (this.#end !== null) return false;
    if (this.#items.length >= this.#limit) {
      this.fail(
        refuse("PEER_TOO_SLOW", "the peer does not read the messages sent to it", {
          metadata: { limit: String(this.#limit) },
        }),
      );
      return false;
    }
    this.#items.push(item);
    this.#signal();
    return true;
  }

  /** End the outbox once the waiting frames have been read. */
  close(): void {
    this.#end ??= "closed";
    this.#signal();
  }

  /**
   * End the outbox immediately: drop the waiting frames and give the reader the error. No effect if it has
   * already ended.
   */
  fail(error: unknown): void {
    if (this.#end !== null) return;
    this.#end = { error };
    this.#items.length = 0;
    this.#signal();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    try {
      for (;;) {
        // Take one frame at a time. Frames that are taken early would not count towards the limit, and would
        // still be sent after a failure.
        while (this.#items.length > 0) yield this.#items.shift() as T;
        if (this.#end === "closed") return;
        if (this.#end !== null) throw this.#end.error;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      // Drop all waiting and later frames, because the reader has left.
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
