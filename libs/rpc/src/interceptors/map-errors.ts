import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { mapError } from "@rollcall/errors";
import { withMessages } from "../calls/call-end.ts";

/** Convert a handler's exception to the error that its caller is allowed to see; see mapError(). */
export const mapErrors: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    if (!response.stream) return response;
    return withMessages(response, request, (messages) => messages.mapErrors(ownError));
  } catch (error) {
    throw ownError(error);
  }
};

/**
 * Copy an error for one call. The same error can end several calls, for example all calls of a batch, and each
 * call adds headers to its own copy.
 */
function ownError(error: unknown): ConnectError {
  const shared = mapError(error);
  const own = new ConnectError(shared.rawMessage, shared.code, undefined, undefined, shared.cause);
  own.details = [...shared.details];
  return own;
}
