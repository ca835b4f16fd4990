import type { Interceptor, StreamResponse, UnaryResponse } from "@connectrpc/connect";

type Next = Parameters<Interceptor>[0];
type Request = Parameters<Next>[0];

/**
 * Run a call and tell its end exactly once, with the error it ended with, or undefined. A stream ends with its last
 * message, with an error, or when its caller goes away, even before the first message was asked for.
 */
export async function runToEnd(
  next: Next,
  request: Request,
  onEnd: (error: unknown) => void,
): Promise<UnaryResponse | StreamResponse> {
  let ended = false;
  const end = (error: unknown) => {
    if (ended) return;
    ended = true;
    request.signal.removeEventListener("abort", onAbort);
    onEnd(error);
  };
  const onAbort = () => end(request.signal.reason);
  try {
    const response = await next(request);
    if (!response.stream) {
      end(undefined);
      return response;
    }
    request.signal.addEventListener("abort", onAbort, { once: true });
    if (request.signal.aborted) onAbort();
    return { ...response, message: untilEnd(response.message, end) };
  } catch (error) {
    end(error);
    throw error;
  }
}

async function* untilEnd<T>(messages: AsyncIterable<T>, end: (error: unknown) => void) {
  try {
    yield* messages;
    end(undefined);
  } catch (error) {
    end(error);
    throw error;
  } finally {
    // Reached without the lines above when the reader stops early: that is how a caller that went away looks from here.
    end(CALLER_LEFT);
  }
}

/** How the end of a stream is told whose reader stopped early. */
const CALLER_LEFT = new DOMException("the caller went away", "AbortError");
