type OnEnd = (error: unknown) => void;

/**
 * The messages of a call as its interceptors pass them on, to one reader, which asks for one at a time. All of them
 * share one object: each that passed messages on by itself would keep some promises of every call until its next
 * message.
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
  // Of the one step that is under way. A race against one long-lived promise would keep a record of every step.
  #resolve: ((result: IteratorResult<T>) => void) | null = null;
  #reject: ((reason: unknown) => void) | null = null;

  private constructor(messages: AsyncIterable<T>, signal: AbortSignal) {
    this.#signal = signal;
    this.#inner = messages[Symbol.asyncIterator]();
    signal.addEventListener("abort", this.#onAbort, { once: true });
    if (signal.aborted) this.#onAbort();
  }

  /** These messages; the same object where an interceptor has them already. */
  static of<T>(messages: AsyncIterable<T>, signal: AbortSignal): CallMessages<T> {
    if (messages instanceof CallMessages && messages.#signal === signal) return messages;
    return new CallMessages(messages, signal);
  }

  /**
   * Have a listener told of the end, once, with the error it ended with, or undefined; at once when it has ended. They
   * end with the last message, with an error, when the reader leaves, or when the signal has aborted, after the time
   * that cutAfter() gives them: even if no message was ever asked for.
   */
  whenEnded(onEnd: OnEnd): this {
    if (this.#ended === null) this.#onEnd.push(onEnd);
    else onEnd(this.#ended.error);
    return this;
  }

  /** Have errors seen by the reader, and by listeners, as this function makes them. */
  mapErrors(map: (error: unknown) => unknown): this {
    const inner = this.#asSeen;
    this.#asSeen = (error) => map(inner(error));
    return this;
  }

  /**
   * End with the signal's reason a while after it has aborted. A handler that is parked, waiting for its caller, would
   * otherwise keep its stream open for ever.
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

  /** The reader stops early: that is how a caller that went away looks from here. */
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
    // A handler that heeds the signal has the last word.
    if (this.#graceMs === null) this.#tell(this.#signal.reason);
    else this.#startGrace(this.#graceMs);
  };

  #startGrace(graceMs: number): void {
    this.#timer ??= setTimeout(() => {
      const reason = this.#asSeen(this.#signal.reason);
      this.#cut = { reason };
      this.#reject?.(reason);
      this.#tell(reason);
      // The call has ended: how its handler ends changes nothing.
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

/** How the end of a stream is reported whose reader stopped early. */
const CALLER_LEFT = new DOMException("the caller went away", "AbortError");
