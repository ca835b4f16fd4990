/** A signal that aborts with the first of several, until it is released. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Let go of the signals it listens to: some of them live as long as the server. */
  release(): void;
}

/** Link signals. AbortSignal.any() is not used: on Node 20 it leaves something behind on long-lived signals each time. */
export function linkSignals(signals: readonly AbortSignal[]): LinkedSignal {
  const controller = new AbortController();
  const release = () => {
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
    for (const { source, listener } of listeners)
      source.addEventListener("abort", listener, { once: true });
  }
  return { signal: controller.signal, release };
}
