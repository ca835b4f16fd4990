import { SilentStreamError } from "./errors.ts";

/** The server sends a message every 10 s: a stream that is silent for so long is broken. */
export const SILENCE_MS = 30_000;

/**
 * The messages of a stream until it ends, breaks, or falls silent. Throws SilentStreamError for silence. Time that the
 * consumer takes does not count.
 */
export async function* untilSilent<T>(
  open: (signal: AbortSignal) => AsyncIterable<T>,
  signal: AbortSignal,
  silenceMs = SILENCE_MS,
): AsyncGenerator<T, void> {
  const ending = new AbortController();
  const end = () => ending.abort();
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  const messages = open(ending.signal)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const timer = setTimeout(() => ending.abort(new SilentStreamError()), silenceMs);
      const { done, value } = await messages.next().finally(() => clearTimeout(timer));
      if (done) return;
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}
