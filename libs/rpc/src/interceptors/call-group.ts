/**
 * Calls that are aborted together at a shutdown. If all of them listened to one signal, the eleventh would
 * cause a leak warning, and each call that ends would search for its listener among all others. With a group,
 * joining and leaving have constant cost.
 */
export class CallGroup {
  readonly #calls = new Set<AbortController>();
  #end: { readonly reason: unknown } | null = null;

  /** The number of calls in progress. */
  get size(): number {
    return this.#calls.size;
  }

  /**
   * Add a call to the group. If the group has already been aborted, the call is aborted immediately. No
   * effect if the call has ended.
   */
  join(call: AbortController): void {
    if (call.signal.aborted) return;
    if (this.#end === null) this.#calls.add(call);
    else call.abort(this.#end.reason);
  }

  /** Remove a call from the group, so that it is not aborted with the group. */
  leave(call: AbortController): void {
    this.#calls.delete(call);
  }

  /** Abort all calls of the group, and all calls that join later. Only the first reason is used. */
  abort(reason: unknown): void {
    if (this.#end !== null) return;
    this.#end = { reason };
    const calls = [...this.#calls];
    this.#calls.clear();
    for (const call of calls) call.abort(reason);
  }
}
