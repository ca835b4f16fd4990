type OnEnd = (error: unknown) => void;

/**
 * The messages of a call. Interceptors pass them on to a single reader that requests one message at a time. All
 * interceptors share one object: if each of them wrapped the messages, every call would keep several promises until
 * its next message.
 */
export class CallMessages<T> implements AsyncIterable<T>, AsyncIterator<T> {
  readonly #signal: AbortSignal;
  readonly #inner: AsyncIterator<T>;
  readonly #onEnd: OnEnd[] = [];
  #asSeen: (error: unknown) => unknown = (error) => error;
  #ended: { readonly error: unknown } | null = null;
  #graceMs: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #cut: { readonly reason: unknown } | null = null;
  // The functions that settle the step in progress. A race against one long-lived promise would leak a record of
  // every step.
  #resolve: ((result: IteratorResult<T>) => void) | null = null;
  #reject: ((reason: unknown) => void) | null = null;

  private constructor(messages: AsyncIterable<T>, signal: AbortSignal) {
    this.#signal = signal;
    this.#inner = messages[Symbol.asyncIterator]();
    signal.addEventListener("abort", this.#onAbort, { once: true });
    if (signal.aborted) this.#onAbort();
  }

  /** Wrap the messages of a call. Returns the same object if an interceptor has already wrapped them. */
  static of<T>(messages: AsyncIterable<T>, signal: AbortSignal): CallMessages<T> {
    if (messages instanceof CallMessages && messages.#signal === signal) return messages;
    return new CallMessages(messages, signal);
  }

  /**
   * Call a listener once when the messages end, with the error or undefined; immediately if they have ended. The
   * messages end with the last one, with an error, or when the reader leaves. They also end when the signal aborts,
   * after the time set by cutAfter(), even if no message was ever requested.
   */
  whenEnded(onEnd: OnEnd): this {
    if (this.#ended === null) this.#onEnd.push(onEnd);
    else onEnd(this.#ended.error);
    return this;
  }

  /** Map errors before the reader and the listeners see them. */
  mapErrors(map: (error: unknown) => unknown): this {
    const inner = this.#asSeen;
    this.#asSeen = (error) => map(inner(error));
    return this;
  }

  /**
   * End with the signal's reason, `graceMs` after the signal has aborted. Otherwise a handler that waits for its
   * caller would keep its stream open forever.
   */
  cutAfter(graceMs: number): this {
    this.#graceMs = graceMs;
    if (this.#signal.aborted) this.#startGrace(graceMs);
    return this;
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return this;
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#cut !== null) return Promise.reject(this.#cut.reason);
    return new Promise<IteratorResult<T>>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#inner.next().then(this.#onResult, this.#onError);
    });
  }

  /** Called when the reader stops early, for example because the caller disconnected. */
  async return(value?: unknown): Promise<IteratorResult<T>> {
    if (this.#cut !== null) return { done: true, value };
    try {
      return (await this.#inner.return?.(value)) ?? { done: true, value };
    } catch (error) {
      throw this.#asSeen(error);
    } finally {
      this.#end(CALLER_LEFT);
    }
  }

  readonly #onResult = (result: IteratorResult<T>): void => {
    const resolve = this.#resolve;
    this.#settle();
    if (result.done) this.#end(undefined);
    resolve?.(result);
  };

  readonly #onError = (thrown: unknown): void => {
    const reject = this.#reject;
    this.#settle();
    const error = this.#asSeen(thrown);
    this.#end(error);
    reject?.(error);
  };

  readonly #onAbort = (): void => {
    // End now without a grace period. With a grace period, a handler that obeys the signal determines the outcome.
    if (this.#graceMs === null) this.#tell(this.#signal.reason);
    else this.#startGrace(this.#graceMs);
  };

  #startGrace(graceMs: number): void {
    this.#timer ??= setTimeout(() => {
      const reason = this.#asSeen(this.#signal.reason);
      this.#cut = { reason };
      this.#reject?.(reason);
      this.#tell(reason);
      // Ignore how the handler ends, because the call has already ended.
      this.#inner.return?.()?.catch(() => {});
    }, graceMs);
  }

  #settle(): void {
    this.#resolve = null;
    this.#reject = null;
  }

  #end(error: unknown): void {
    this.#release();
    this.#tell(error);
  }

  #release(): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener("abort", this.#onAbort);
  }

  #tell(error: unknown): void {
    if (this.#ended !== null) return;
    this.#ended = { error };
    for (const onEnd of this.#onEnd.splice(0)) onEnd(error);
  }
}

/** The error that is reported for a stream whose reader stopped early. */
const CALLER_LEFT = new DOMException("the caller disconnected", "AbortError");
