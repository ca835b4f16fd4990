import { SilentStreamError } from "./errors.ts";

/** How long a stream may be silent before it counts as broken. The server sends a message every 10 s. */
export const SILENCE_MS = 30_000;

/**
 * Iterate over the messages of a stream until it ends, breaks or falls silent. Throws SilentStreamError if it falls
 * silent. The time that the consumer takes to handle a message does not count as silence.
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
