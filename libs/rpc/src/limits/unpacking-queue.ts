import { refuse } from "@rollcall/errors";

const MOST_WAITING = 256;
const RETRY_AFTER_MS = 1_000;

/** Decompresses messages one at a time, in order of arrival. */
export class UnpackingQueue {
  readonly #mostWaiting: number;
  readonly #waiting = new Set<() => void>();
  #isBusy = false;

  /**
   * @param mostWaiting maximum number of messages that can wait. Further messages are refused with
   *   OVERLOADED.
   */
  constructor(mostWaiting = MOST_WAITING) {
    this.#mostWaiting = mostWaiting;
  }

  /**
   * Decompress a message after all earlier ones. Rejects with OVERLOADED if too many messages wait, and
   * with the error of `unpack`.
   */
  async add<T>(unpack: () => Promise<T>): Promise<T> {
    if (this.#isBusy) await this.#turn();
    this.#isBusy = true;
    try {
      return await unpack();
    } finally {
      this.#next();
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.size >= this.#mostWaiting) {
      const message = "too many compressed requests at the same time; send them uncompressed, or try again";
      throw refuse("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
    }
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  /** Start the next message in the same step, so that no other message can overtake. */
  #next(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#isBusy = false;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
