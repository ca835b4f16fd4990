import { refuse } from "@rollcall/errors";

const MOST_WAITING = 256;
const RETRY_AFTER_MS = 1_000;

/** Unpacks messages one at a time, in the order in which they came. */
export class UnpackingQueue {
  readonly #mostWaiting: number;
  readonly #waiting = new Set<() => void>();
  #isBusy = false;

  /** @param mostWaiting further ones are refused with OVERLOADED. */
  constructor(mostWaiting = MOST_WAITING) {
    this.#mostWaiting = mostWaiting;
  }

  /** Unpack when it is this one's turn. Rejects with OVERLOADED, or with what `unpack` rejects with. */
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
      const message = "too many compressed requests at a time; send them uncompressed, or try again";
      throw refuse("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
    }
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  /** A turn passes on without becoming free, so no message can overtake. */
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
