import type { Interceptor } from "@connectrpc/connect";
import { mapError } from "@rollcall/errors";
import { type Clock, gauge, histogram, type MetricsRegistry } from "@rollcall/process";
import { runToEnd } from "../calls/call-end.ts";
import { codeName, methodName } from "../calls/policy.ts";

/** Measure how long calls take, for each method and code, and how many streams are open. */
export function measureCalls(metrics: MetricsRegistry, clock: Clock): Interceptor {
  const observe = rpcDurations(metrics);
  const open = gauge(metrics, {
    name: "rollcall_rpc_streams_open",
    help: "Open streams, by method.",
    labelNames: ["method"],
  });
  return (next) => (request) => {
    const startMs = clock.nowMs();
    const method = methodName(request.method);
    if (request.stream) open.inc({ method });
    return runToEnd(next, request, (error) => {
      if (request.stream) open.dec({ method });
      const code = error === undefined ? undefined : mapError(error).code;
      observe(method, codeName(code), clock.nowMs() - startMs);
    });
  };
}

/** Create the histogram of all calls. Returns a function that records one call. */
export function rpcDurations(metrics: MetricsRegistry): (method: string, code: string, durationMs: number) => void {
  const durations = histogram(metrics, {
    name: "rollcall_rpc_duration_seconds",
    help: "Duration of calls, by method and code; streams are measured from start to end.",
    labelNames: ["method", "code"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  });
  return (method, code, durationMs) => durations.observe({ method, code }, durationMs / 1000);
}
