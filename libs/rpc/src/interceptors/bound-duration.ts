import type { Interceptor } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { endingOf } from "../calls/call-context.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import { beforeAbort, withMessages } from "./call-end.ts";
import type { CallGroup } from "./call-group.ts";

/** The calls under way, by when they must end for the server's sake. */
export interface ServerEnding {
  /** Aborted when the server starts to end. */
  readonly streams: CallGroup;
  /** Aborted when the grace period of unary calls has passed as well. */
  readonly unary: CallGroup;
}

/** How long a stream's handler may take to end by itself, after its signal has aborted. */
const STREAM_GRACE_MS = 500;

/**
 * Bound every call: a unary call by the deadline of its policy row, or the caller's own where that is sooner, whether
 * or not its handler heeds the signal; a stream by the end of the server.
 */
export function boundDuration(policies: PolicyTable, ending: ServerEnding): Interceptor {
  return (next) => async (request) => {
    const call = endingOf(request.contextValues);
    if (request.stream) {
      // It is aborted at every end of a call, not only when that fails.
      request.signal.addEventListener("abort", () => ending.streams.leave(call), { once: true });
      // The caller may have given it no time at all: then nothing would tell the group of its end.
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
