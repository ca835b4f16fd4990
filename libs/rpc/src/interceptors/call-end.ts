import type { Message } from "@bufbuild/protobuf";
import type { Interceptor, StreamResponse, UnaryResponse } from "@connectrpc/connect";
import { CallMessages } from "./call-messages.ts";

type Next = Parameters<Interceptor>[0];
type Request = Parameters<Next>[0];

/**
 * Run a call and tell its end exactly once, with the error it ended with, or undefined; of a stream see
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

/** A response whose messages an interceptor passes on. */
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
 * The result of some work, or the signal's reason when it aborts first. The work itself goes on until it sees the
 * signal.
 */
export function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
