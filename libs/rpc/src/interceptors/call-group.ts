/**
 * Calls that end together, when the server does. A signal that all of them listened to would warn of a leak at the
 * eleventh, and each that ends would search its place among all listeners; here, to come and to go costs the same
 * however many there are.
 */
export class CallGroup {
  readonly #calls = new Set<AbortController>();
  #end: { readonly reason: unknown } | null = null;

  /** How many calls are under way. */
  get size(): number {
    return this.#calls.size;
  }

  /** Be aborted with the others; at once when they were already. Does nothing when the call has ended. */
  join(call: AbortController): void {
    if (call.signal.aborted) return;
    if (this.#end === null) this.#calls.add(call);
    else call.abort(this.#end.reason);
  }

  /** Leave the group: no longer be aborted with it. */
  leave(call: AbortController): void {
    this.#calls.delete(call);
  }

  /** Abort the calls that are under way, and from now on all that come. The first reason stands. */
  abort(reason: unknown): void {
    if (this.#end !== null) return;
    this.#end = { reason };
    const calls = [...this.#calls];
    this.#calls.clear();
    for (const call of calls) call.abort(reason);
  }
}
