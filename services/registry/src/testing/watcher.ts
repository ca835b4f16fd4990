/** The messages of a stream so far, and how it ended. */
export interface Watched<T> {
  readonly messages: readonly T[];
  /**
   * Wait until the messages satisfy a condition. Waits at most half a minute, and not after the
   * end of the stream.
   */
  until(what: (messages: readonly T[]) => boolean): Promise<void>;
  /** Wait for the end of the stream. Returns its error. */
  ended(): Promise<unknown>;
  /** Stop reading until resumed. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

const PATIENCE_MS = 30_000;

/** Read a stream in the background. `open` gets a signal that ends the stream from this side. */
export function watchInBackground<T>(open: (signal: AbortSignal) => AsyncIterable<T>): Watched<T> {
  const messages: T[] = [];
  const leaving = new AbortController();
  const checks = new Set<() => void>();
  const gate = new Gate();
  let end: { readonly error: unknown } | undefined;
  const check = () => {
    for (const one of [...checks]) one();
  };
  const read = async () => {
    for await (const message of open(leaving.signal)) {
      messages.push(message);
      check();
      await gate.passable;
    }
  };
  const done = read().then(
    () => {
      end = { error: undefined };
      check();
    },
    (error: unknown) => {
      end = { error };
      check();
    },
  );
  return {
    messages,
    until: (what) =>
      new Promise((resolve, reject) => {
        const settle = (finish: () => void) => {
          clearTimeout(timer);
          checks.delete(one);
          finish();
        };
        const fail = () => {
          const error = end?.error ?? (end === undefined ? "going on" : "ended");
          const state = `${messages.length} messages, ${error}`;
          settle(() => reject(new Error(`what was waited for did not come: ${state}`)));
        };
        const one = () => {
          if (what(messages)) settle(resolve);
          else if (end !== undefined) fail();
        };
        const timer = setTimeout(fail, PATIENCE_MS);
        checks.add(one);
        one();
      }),
    ended: async () => {
      await done;
      return end?.error;
    },
    pause: () => gate.close(),
    resume: () => gate.open(),
    stop: async () => {
      gate.open();
      leaving.abort();
      await done;
    },
  };
}

class Gate {
  passable: Promise<void> = Promise.resolve();
  #release: () => void = () => {};

  close(): void {
    this.passable = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  open(): void {
    this.#release();
  }
}
