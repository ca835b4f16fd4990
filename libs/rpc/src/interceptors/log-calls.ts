import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, type Interceptor } from "@connectrpc/connect";
import { describeError, isCallersFault, mapError } from "@rollcall/errors";
import { actorOf } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import { callerKey, peerKey, requestIdKey, seenKey } from "../calls/call-context.ts";
import { runToEnd } from "../calls/call-end.ts";
import { codeName, methodName } from "../calls/policy.ts";
import type { AnonymousLog } from "../limits/anonymous-log.ts";

/** Methods that make no decision, and that load balancers, tools and agents call all the time. */
const QUIET = /^grpc\.(health|reflection)\.|\/(CreateChallenge|ReportHeartbeat)$/;

export interface LogCallsOptions {
  readonly log: Logger;
  /** Logs lines about calls of anonymous clients. */
  readonly anonymousClients: AnonymousLog;
  readonly clock: Clock;
}

/**
 * Write one line per unary call, at its end, and two per stream, at its admission and its end. Successful reads, and
 * calls that make no decision, are logged at debug level. Lines about anonymous clients are limited: see AnonymousLog.
 */
export function logCalls({ log, anonymousClients, clock }: LogCallsOptions): Interceptor {
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
      // Do not count these lines: lines about known callers are not limited, and debug lines rarely reach a log.
      if (values.get(callerKey).kind !== "anonymous" || level === "debug") {
        log[level]({ peer, ...own }, message);
      } else {
        anonymousClients.write({ level, peer, what, fields: own, message, isFault });
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
  /** The level of the line; absent for the method's default level. */
  readonly level?: Level;
  /** The reason of the error, or its code. */
  readonly what: string;
  readonly fields: object;
  /** Whether the caller itself caused the error. */
  readonly isFault?: boolean;
}

function outcomeOf(error: unknown): Outcome {
  if (error === undefined) return { what: "ok", fields: { code: codeName(undefined) } };
  // Map the error here too, because errors of the transport do not pass the interceptor that maps errors.
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
