import type { ConnectError } from "@connectrpc/connect";
import { describeError, isErrorReasonName, mapError, refuse } from "@rollcall/errors";
import type { Farewell } from "../replica/farewell.ts";

/** A farewell as an error: of a call, or of a stream's status. */
export function errorOf({ reason, message, metadata, retryAfterMs, violations }: Farewell): ConnectError {
  return refuse(reason, message, {
    ...(metadata === undefined ? {} : { metadata }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(violations === undefined ? {} : { violations }),
  });
}

/** The farewell for a thrown error. */
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
