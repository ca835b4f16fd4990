import type { Interceptor } from "@connectrpc/connect";
import { mapError } from "@rollcall/errors";
import { inSpan, type Tracer } from "@rollcall/process";
import { requestIdKey } from "../calls/call-context.ts";
import { codeName, methodName } from "../calls/policy.ts";

const HEADER = "traceparent";

/**
 * Run each unary call in a span, which is part of the caller's trace if the caller names one. Streams are not traced:
 * they last for days, and a span is sent only when it ends.
 */
export function traceCalls(tracer: Tracer): Interceptor {
  return (next) => (request) => {
    if (request.stream) return next(request);
    const name = methodName(request.method);
    const [service = "", method = ""] = name.split("/");
    const values = {
      "rpc.system": "connect_rpc",
      "rpc.service": service,
      "rpc.method": method,
      "rollcall.request_id": request.contextValues.get(requestIdKey),
    };
    const span = tracer.start({ name, traceparent: request.header.get(HEADER), values });
    return inSpan(span, async () => {
      try {
        const response = await next(request);
        span.end();
        return response;
      } catch (error) {
        const code = codeName(mapError(error).code);
        span.set("rpc.response.status_code", code);
        span.end(code);
        throw error;
      }
    });
  };
}
