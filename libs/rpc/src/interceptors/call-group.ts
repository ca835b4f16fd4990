/** A signal that aborts with the first of several, until it is released. */
interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Abort it alone. */
  abort(reason: unknown): void;
  /** Let go of the signals and of the group: the group lives as long as the server. */
  release(): void;
}

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

  /** Be aborted with the others; at once when they were already. */
  join(call: AbortController): void {
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

/**
 * Link the signals of one call, and the group of calls that it belongs to. AbortSignal.any() is not used: on Node 20 it
 * leaves something behind on long-lived signals each time.
 */
export function linkSignals(signals: readonly AbortSignal[], group: CallGroup): LinkedSignal {
  const controller = new AbortController();
  const release = () => {
    group.leave(controller);
    for (const { source, listener } of listeners) source.removeEventListener("abort", listener);
  };
  const listeners = signals.map((source) => ({
    source,
    listener: () => {
      release();
      controller.abort(source.reason);
    },
  }));
  const aborted = listeners.find(({ source }) => source.aborted);
  if (aborted !== undefined) {
    controller.abort(aborted.source.reason);
  } else {
    for (const { source, listener } of listeners) source.addEventListener("abort", listener, { once: true });
    group.join(controller);
  }
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), release };
}
