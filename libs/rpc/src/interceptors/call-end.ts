import type { Interceptor, StreamResponse, UnaryResponse } from "@connectrpc/connect";

type Next = Parameters<Interceptor>[0];
type Request = Parameters<Next>[0];
type OnEnd = (error: unknown) => void;

/**
 * Run a call and tell its end exactly once, with the error it ended with, or undefined. A stream ends with its last
 * message, with an error, or when its caller goes away, even before the first message was asked for.
 */
export async function runToEnd(next: Next, request: Request, onEnd: OnEnd): Promise<UnaryResponse | StreamResponse> {
  let response: UnaryResponse | StreamResponse;
  try {
    response = await next(request);
  } catch (error) {
    onEnd(error);
    throw error;
  }
  if (!response.stream) {
    onEnd(undefined);
    return response;
  }
  const { message: messages } = response;
  // Interceptors next to each other share one look-out: each message passes it once.
  if (messages instanceof UntilEnd && messages.signal === request.signal) {
    messages.add(onEnd);
    return response;
  }
  return { ...response, message: new UntilEnd(messages, request.signal, onEnd) };
}

/**
 * Passes messages on, and reports their end. A class, since a generator would cost each held stream more, and each
 * message.
 */
class UntilEnd<T> implements AsyncIterable<T>, AsyncIterator<T> {
  readonly signal: AbortSignal;
  readonly #inner: AsyncIterator<T>;
  readonly #onEnd: OnEnd[];
  #ended: { readonly error: unknown } | null = null;

  constructor(messages: AsyncIterable<T>, signal: AbortSignal, onEnd: OnEnd) {
    this.signal = signal;
    this.#inner = messages[Symbol.asyncIterator]();
    this.#onEnd = [onEnd];
    signal.addEventListener("abort", this.#onAbort, { once: true });
    if (signal.aborted) this.#onAbort();
  }

  /** Add a listener; it is called at once when the call has ended. */
  add(onEnd: OnEnd): void {
    if (this.#ended === null) this.#onEnd.push(onEnd);
    else onEnd(this.#ended.error);
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return this;
  }

  next(): Promise<IteratorResult<T>> {
    return this.#inner.next().then(this.#onResult, this.#onError);
  }

  /** The reader stops early: that is how a caller that went away looks from here. */
  async return(value?: unknown): Promise<IteratorResult<T>> {
    try {
      return (await this.#inner.return?.(value)) ?? { done: true, value };
    } finally {
      this.#end(CALLER_LEFT);
    }
  }

  readonly #onResult = (result: IteratorResult<T>): IteratorResult<T> => {
    if (result.done) this.#end(undefined);
    return result;
  };

  readonly #onError = (error: unknown): never => {
    this.#end(error);
    throw error;
  };

  readonly #onAbort = (): void => this.#end(this.signal.reason);

  #end(error: unknown): void {
    if (this.#ended !== null) return;
    this.#ended = { error };
    this.signal.removeEventListener("abort", this.#onAbort);
    for (const onEnd of this.#onEnd.splice(0)) onEnd(error);
  }
}

/** How the end of a stream is reported whose reader stopped early. */
const CALLER_LEFT = new DOMException("the caller went away", "AbortError");
