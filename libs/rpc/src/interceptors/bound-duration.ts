import type { Interceptor } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import { type CallGroup, linkSignals } from "./call-group.ts";
import { beforeAbort, endAfterAbort } from "./end-after-abort.ts";

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
    if (request.stream) {
      const { signal, release } = linkSignals([request.signal], ending.streams);
      // Connect aborts this signal at every end of a call, not only when it fails.
      request.signal.addEventListener("abort", release, { once: true });
      const response = await next({ ...request, signal });
      if (!response.stream) return response;
      return { ...response, message: endAfterAbort(response.message, signal, STREAM_GRACE_MS) };
    }
    const deadlineMs = policies[methodName(request.method)]?.deadlineMs ?? 0;
    const { signal, abort, release } = linkSignals([request.signal], ending.unary);
    const timer = setTimeout(() => abort(deadlineExceeded(deadlineMs)), deadlineMs);
    try {
      return await beforeAbort(next({ ...request, signal }), signal);
    } finally {
      clearTimeout(timer);
      release();
    }
  };
}

function deadlineExceeded(deadlineMs: number) {
  return refuse("DEADLINE_EXCEEDED", `the call took longer than its deadline of ${deadlineMs} ms`, {
    metadata: { deadline_ms: String(deadlineMs) },
  });
}
