import { describeError, isErrorReasonName, mapError, type RefusalError, refuse } from "@rollcall/errors";
import type { Farewell } from "../replica/farewell.ts";

/** Convert a farewell to an error, for a call or a stream's status. */
export function errorOf({ reason, message, metadata, retryAfterMs, violations, subject }: Farewell): RefusalError {
  return refuse(reason, message, {
    ...(metadata === undefined ? {} : { metadata }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(violations === undefined ? {} : { violations }),
    ...(subject === undefined ? {} : { subject }),
  });
}

/** The farewell for an error that ends a session. */
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
