import type { ConnectError } from "@connectrpc/connect";
import type { FrameCall, FrameReader } from "./frame-call.ts";

interface Waiting<I> {
  readonly resolve: (next: IteratorResult<I, undefined>) => void;
  readonly reject: (error: ConnectError) => void;
}

/**
 * The requests of a call as an iterator. While a request waits to be taken, the call is paused, so that flow control
 * holds back the peer. Fails with the error that the call has ended with, unless the peer ended its half before.
 */
export class CallRequests<I> implements FrameReader<I>, AsyncIterableIterator<I, undefined> {
  readonly #call: Pick<FrameCall<I>, "pause" | "resume">;
  readonly #arrived: I[] = [];
  #end: { readonly error: ConnectError | null } | null = null;
  #waiting: Waiting<I> | null = null;

  constructor(call: Pick<FrameCall<I>, "pause" | "resume">) {
    this.#call = call;
  }

  onFrame(request: I): void {
    this.#call.pause();
    this.#arrived.push(request);
    this.#settle();
  }

  onHalfClose(): void {
    this.onGone(null);
  }

  onGone(error: ConnectError | null): void {
    this.#end ??= { error };
    this.#settle();
  }

  /** Take the next request. Call this again only after the promise has settled. */
  next(): Promise<IteratorResult<I, undefined>> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#settle();
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #settle(): void {
    const waiting = this.#waiting;
    const request = this.#arrived[0];
    if (waiting === null || (request === undefined && this.#end === null)) return;
    this.#waiting = null;
    if (request !== undefined) {
      this.#arrived.shift();
      this.#call.resume();
      waiting.resolve({ done: false, value: request });
    } else if (this.#end?.error) waiting.reject(this.#end.error);
    else waiting.resolve({ done: true, value: undefined });
  }
}
