import type { Interceptor } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { endingOf } from "../calls/call-context.ts";
import { beforeAbort, withMessages } from "../calls/call-end.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import type { CallGroup } from "./call-group.ts";

/** The calls in progress, in groups that a shutdown ends at different times. */
export interface ServerEnding {
  /** Aborted when the server starts to shut down. */
  readonly streams: CallGroup;
  /** Aborted when the grace period of unary calls has ended. */
  readonly unary: CallGroup;
}

/** How long the handler of a stream can take to end after its signal has aborted, in milliseconds. */
const STREAM_GRACE_MS = 500;

/**
 * Bound the duration of every call. A unary call is limited by the deadline in its policy row or, if it is sooner,
 * by the caller's own deadline, even if the handler ignores the signal. A stream can last until the server shuts
 * down.
 */
export function boundDuration(policies: PolicyTable, ending: ServerEnding): Interceptor {
  return (next) => async (request) => {
    const call = endingOf(request.contextValues);
    if (request.stream) {
      // Leave on an abort, because the signal aborts when a call ends for any reason, including success.
      request.signal.addEventListener("abort", () => ending.streams.leave(call), { once: true });
      // Do not join if the call has already ended, for example because of a timeout of 0: it would never leave the
      // group.
      if (!request.signal.aborted) ending.streams.join(call);
      const response = await next(request);
      if (!response.stream) return response;
      return withMessages(response, request, (messages) => messages.cutAfter(STREAM_GRACE_MS));
    }
    const deadlineMs = policies[methodName(request.method)]?.deadlineMs ?? 0;
    const timer = setTimeout(() => call.abort(deadlineExceeded(deadlineMs)), deadlineMs);
    ending.unary.join(call);
    try {
      return await beforeAbort(next(request), request.signal);
    } finally {
      clearTimeout(timer);
      ending.unary.leave(call);
    }
  };
}

function deadlineExceeded(deadlineMs: number) {
  return refuse("DEADLINE_EXCEEDED", `the call took longer than its deadline of ${deadlineMs} ms`, {
    metadata: { deadline_ms: String(deadlineMs) },
  });
}
