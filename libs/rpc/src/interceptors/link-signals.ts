import type { CallGroup } from "./call-group.ts";

/** A signal that aborts with the first of several, until it is released. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Abort it alone. */
  abort(reason: unknown): void;
  /** Let go of the signals and of the group: the group lives as long as the server. */
  release(): void;
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
