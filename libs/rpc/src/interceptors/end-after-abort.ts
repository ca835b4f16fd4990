/**
 * Pass messages on until they end, or until a while after the signal has aborted; then end with the signal's reason.
 * A handler that is parked, waiting for its caller, would otherwise keep its stream open for ever.
 */
export function endAfterAbort<T>(messages: AsyncIterable<T>, signal: AbortSignal, graceMs: number): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => new EndAfterAbort(messages, signal, graceMs) };
}

class EndAfterAbort<T> implements AsyncIterator<T> {
  readonly #inner: AsyncIterator<T>;
  readonly #signal: AbortSignal;
  readonly #graceMs: number;
  #timer: NodeJS.Timeout | undefined;
  #cut: { readonly reason: unknown } | null = null;
  // Of the one step that is under way. A race against one long-lived promise would keep a record of every step.
  #rejectStep: ((reason: unknown) => void) | null = null;

  constructor(messages: AsyncIterable<T>, signal: AbortSignal, graceMs: number) {
    this.#inner = messages[Symbol.asyncIterator]();
    this.#signal = signal;
    this.#graceMs = graceMs;
    signal.addEventListener("abort", this.#onAbort, { once: true });
    if (signal.aborted) this.#onAbort();
  }

  next(): Promise<IteratorResult<T>> {
    return this.#step(() => this.#inner.next());
  }

  return(value?: unknown): Promise<IteratorResult<T>> {
    this.#release();
    return this.#step(() => this.#inner.return?.(value) ?? Promise.resolve({ done: true, value }));
  }

  throw(error?: unknown): Promise<IteratorResult<T>> {
    this.#release();
    return this.#step(() => this.#inner.throw?.(error) ?? Promise.reject(error));
  }

  #step(move: () => Promise<IteratorResult<T>>): Promise<IteratorResult<T>> {
    if (this.#cut !== null) return Promise.reject(this.#cut.reason);
    return new Promise<IteratorResult<T>>((resolve, reject) => {
      this.#rejectStep = reject;
      move().then(
        (result) => {
          this.#rejectStep = null;
          if (result.done) this.#release();
          resolve(result);
        },
        (error: unknown) => {
          this.#rejectStep = null;
          this.#release();
          reject(error);
        },
      );
    });
  }

  readonly #onAbort = (): void => {
    this.#timer = setTimeout(() => {
      this.#cut = { reason: this.#signal.reason };
      this.#rejectStep?.(this.#signal.reason);
      // Nobody waits for the handler any more, however it ends.
      this.#inner.return?.()?.catch(() => {});
    }, this.#graceMs);
  };

  #release(): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener("abort", this.#onAbort);
  }
}

/**
 * The result of some work, or the signal's reason when it aborts first. The work itself goes on until it sees the
 * signal.
 */
export function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
