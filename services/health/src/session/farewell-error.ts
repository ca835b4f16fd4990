import type { ConnectError } from "@connectrpc/connect";
import { describeError, isErrorReasonName, mapError, refuse } from "@rollcall/errors";
import type { Farewell } from "../replica/farewell.ts";

/** The error that a farewell is on the wire: of a call, or of a stream's status. */
export function errorOf({ reason, message, metadata, retryAfterMs, violations }: Farewell): ConnectError {
  return refuse(reason, message, {
    ...(metadata === undefined ? {} : { metadata }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(violations === undefined ? {} : { violations }),
  });
}

/** The farewell of a session that ends with something that was thrown. */
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
