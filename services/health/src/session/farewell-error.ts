import type { ReportHeartbeatResponse } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { describeError, isErrorReasonName, mapError, type RefusalError, refuse } from "@rollcall/errors";
import type { Farewell } from "../replica/farewell.ts";
import type { UnaryAnswer } from "../unary/unary-sessions.ts";

/** Convert a farewell to an error, for a call or a stream's status. */
export function errorOf({ reason, message, metadata, retryAfterMs, violations, subject }: Farewell): RefusalError {
  return refuse(reason, message, {
    ...(metadata === undefined ? {} : { metadata }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(violations === undefined ? {} : { violations }),
    ...(subject === undefined ? {} : { subject }),
  });
}

/** Return a unary answer's response, or throw its farewell as an error that every protocol can carry. */
export function responseOf(answer: UnaryAnswer): ReportHeartbeatResponse {
  if (answer.ok) return answer.response;
  throw errorOf(answer.farewell);
}

export function farewellFrom(error: unknown): Farewell {
  const { reason = "INTERNAL", message, metadata, retryAfterMs, violations } = describeError(mapError(error));
  return {
    reason: isErrorReasonName(reason) ? reason : "INTERNAL",
    message,
    action: "RECONNECT",
    metadata,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(violations.length === 0 ? {} : { violations }),
  };
}
