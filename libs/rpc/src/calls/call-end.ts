import type { Message } from "@bufbuild/protobuf";
import type { Interceptor, StreamResponse, UnaryResponse } from "@connectrpc/connect";
import { CallMessages } from "./call-messages.ts";

type Next = Parameters<Interceptor>[0];
type Request = Parameters<Next>[0];

/**
 * Run a call and report its end exactly once, with its error or undefined. For the end of a stream, see
 * CallMessages.whenEnded().
 */
export async function runToEnd(
  next: Next,
  request: Request,
  onEnd: (error: unknown) => void,
): Promise<UnaryResponse | StreamResponse> {
  let response: UnaryResponse | StreamResponse;
  try {
    response = await next(request);
  } catch (error) {
    onEnd(error);
    throw error;
  }
  if (response.stream) return withMessages(response, request, (messages) => messages.whenEnded(onEnd));
  onEnd(undefined);
  return response;
}

/** Return a response with the messages that an interceptor passes on. */
export function withMessages(
  response: StreamResponse,
  { signal }: Pick<Request, "signal">,
  passOn: (messages: CallMessages<Message>) => void,
): StreamResponse {
  const messages = CallMessages.of(response.message, signal);
  passOn(messages);
  return messages === response.message ? response : { ...response, message: messages };
}

/**
 * Wait for the result of some work, or reject with the signal's reason if it aborts first. The work itself
 * continues until it checks the signal.
 */
export function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
