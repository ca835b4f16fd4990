import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, type Interceptor } from "@connectrpc/connect";
import { describeError, isCallersFault, mapError } from "@rollcall/errors";
import { actorOf } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import { callerKey, peerKey, requestIdKey, seenKey } from "../calls/call-context.ts";
import { codeName, methodName } from "../calls/policy.ts";
import type { StrangerLog } from "../limits/stranger-log.ts";
import { runToEnd } from "./call-end.ts";

/** Methods that balancers and tools call all the time. */
const QUIET = /^grpc\.(health|reflection)\./;

export interface LogCallsOptions {
  readonly log: Logger;
  /** For calls of callers who are not known. */
  readonly strangers: StrangerLog;
  readonly clock: Clock;
}

/**
 * Write one line for a unary call, at its end; two for a stream, when it has been let in and when it has ended. Reads
 * that succeed are written at debug level. Of callers who are not known the lines are few: see StrangerLog.
 */
export function logCalls({ log, strangers, clock }: LogCallsOptions): Interceptor {
  return (next) => (request) => {
    const startMs = clock.nowMs();
    const { contextValues: values, stream: isStream } = request;
    values.set(seenKey, true);
    const method = methodName(request.method);
    const isRead = request.method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    const normal = QUIET.test(method) || isRead ? "debug" : "info";
    const peer = values.get(peerKey);
    const write = (level: Level, what: string, fields: object, message: string, isFault = false) => {
      const own = { method, request_id: values.get(requestIdKey), ...fields };
      // Nothing of these reaches a log that is read: they need no counting.
      if (values.get(callerKey).kind !== "anonymous" || level === "debug") {
        log[level]({ peer, ...own }, message);
      } else {
        strangers.write({ level, peer, what, fields: own, message, isFault });
      }
    };
    const opened: typeof next = async (opening) => {
      const response = await next(opening);
      write(normal, "opened", {}, "stream opened");
      return response;
    };
    return runToEnd(isStream ? opened : next, request, (error) => {
      const { level = normal, what, fields, isFault } = outcomeOf(error);
      const all = {
        duration_ms: Math.round((clock.nowMs() - startMs) * 10) / 10,
        caller: actorOf(values.get(callerKey)),
        ...fields,
      };
      write(level, what, all, isStream ? "stream closed" : "call finished", isFault);
    });
  };
}

type Level = "debug" | "info" | "warn" | "error";

interface Outcome {
  /** Absent where it is that of the method. */
  readonly level?: Level;
  /** The reason, or the code. */
  readonly what: string;
  readonly fields: object;
  /** Whether it is the caller's own. */
  readonly isFault?: boolean;
}

function outcomeOf(error: unknown): Outcome {
  if (error === undefined) return { what: "ok", fields: { code: codeName(undefined) } };
  // What was thrown outside of the mapping, by the transport, is mapped here.
  const mapped = mapError(error);
  const { code, reason, message } = describeError(mapped);
  const fields = { code: codeName(code), reason, message };
  const what = reason ?? codeName(code);
  if (code !== Code.Internal && reason !== "STORE_UNAVAILABLE") {
    return { level: "info", what, fields, isFault: isCallersFault({ code, reason }) };
  }
  const level = code === Code.Internal ? "error" : "warn";
  const { cause } = mapped;
  return { level, what, fields: cause === undefined ? fields : { ...fields, err: cause } };
}
