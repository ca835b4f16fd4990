import { Code, type Interceptor } from "@connectrpc/connect";
import { actorOf, callerKey, requestIdKey } from "../../auth.ts";
import type { Clock } from "../../clock.ts";
import { mapError } from "../../error-mapping.ts";
import { describeError } from "../../errors.ts";
import type { LogFunction, Logger } from "../../logging.ts";
import { peerKey, seenKey } from "../call-values.ts";
import { methodName } from "../method-name.ts";
import { runToEnd } from "./call-end.ts";
import { codeName } from "./code-name.ts";

/** Methods that balancers and tools call all the time. */
const QUIET = /^grpc\.(health|reflection)\./;

/** Write one line for a unary call, at its end; two for a stream, when it opens and when it has ended. */
export function logCalls(log: Logger, clock: Clock): Interceptor {
  return (next) => (request) => {
    const startMs = clock.nowMs();
    request.contextValues.set(seenKey, true);
    const method = methodName(request.method);
    const peer = request.contextValues.get(peerKey);
    const requestIdentifier = request.contextValues.get(requestIdKey);
    const common = { method, peer, request_id: requestIdentifier };
    const normal = QUIET.test(method) ? log.debug : log.info;
    if (request.stream) normal.call(log, common, "stream opened");
    return runToEnd(next, request, (error) => {
      const outcome = outcomeOf(error);
      const fields = {
        ...common,
        ...outcome.fields,
        duration_ms: Math.round((clock.nowMs() - startMs) * 10) / 10,
        caller: actorOf(request.contextValues.get(callerKey)),
      };
      const write = outcome.severe ? severe(log, outcome.code) : normal;
      write.call(log, fields, request.stream ? "stream closed" : "call finished");
    });
  };
}

interface Outcome {
  readonly code: Code | undefined;
  readonly severe: boolean;
  readonly fields: object;
}

function outcomeOf(error: unknown): Outcome {
  if (error === undefined)
    return { code: undefined, severe: false, fields: { code: codeName(undefined) } };
  // What was thrown outside of the mapping, by the transport, is mapped here.
  const mapped = mapError(error);
  const { code, reason, message } = describeError(mapped);
  const severe = code === Code.Internal || reason === "STORE_UNAVAILABLE";
  const fields = { code: codeName(code), reason, message };
  return {
    code,
    severe,
    fields: severe && mapped.cause !== undefined ? { ...fields, err: mapped.cause } : fields,
  };
}

function severe(log: Logger, code: Code | undefined): LogFunction {
  return code === Code.Internal ? log.error : log.warn;
}
