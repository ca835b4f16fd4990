import { eventually } from "@rollcall/testkit";

/** What a stream has sent so far, and how it ended. */
export interface Watched<T> {
  readonly messages: readonly T[];
  /** Undefined while it goes on. */
  readonly end: { readonly error: unknown } | undefined;
  /** Wait until something is true of what was sent. */
  until(what: (messages: readonly T[]) => boolean): Promise<void>;
  /** Wait for the end; what it threw. */
  ended(): Promise<unknown>;
  /** Read no further until told to. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

/** Read a stream in the background. `open` gets the signal that ends it from this side. */
export function watchInBackground<T>(open: (signal: AbortSignal) => AsyncIterable<T>): Watched<T> {
  const messages: T[] = [];
  const leaving = new AbortController();
  let end: { readonly error: unknown } | undefined;
  let gate: { readonly open: Promise<void>; readonly release: () => void } | null = null;
  const done = (async () => {
    try {
      for await (const message of open(leaving.signal)) {
        messages.push(message);
        await gate?.open;
      }
      end = { error: undefined };
    } catch (error) {
      end = { error };
    }
  })();
  return {
    messages,
    get end() {
      return end;
    },
    until: async (what) => {
      await eventually(() => {
        if (what(messages)) return;
        throw new Error(`after ${messages.length} messages it is not so, ended: ${end?.error}`);
      });
    },
    ended: async () => {
      await done;
      return end?.error;
    },
    pause: () => {
      let release = () => {};
      const open = new Promise<void>((resolve) => {
        release = resolve;
      });
      gate = { open, release };
    },
    resume: () => {
      gate?.release();
      gate = null;
    },
    stop: async () => {
      gate?.release();
      leaving.abort();
      await done;
    },
  };
}
