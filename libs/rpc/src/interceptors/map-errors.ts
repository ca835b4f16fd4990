import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { mapError } from "@rollcall/errors";
import { withMessages } from "./call-end.ts";

/** Turn whatever a handler throws into the error that its caller may see; see mapError(). */
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
 * Each call gets an error of its own: one error may end several calls, of a batch for example, and headers are added to
 * it.
 */
function ownError(error: unknown): ConnectError {
  const shared = mapError(error);
  const own = new ConnectError(shared.rawMessage, shared.code, undefined, undefined, shared.cause);
  own.details = [...shared.details];
  return own;
}
