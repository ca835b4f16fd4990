import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { mapError } from "../../error-mapping.ts";

/** Turn whatever a handler throws into the error that its caller may see; see mapError(). */
export const mapErrors: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: mapped(response.message) } : response;
  } catch (error) {
    throw ownError(error);
  }
};

async function* mapped<T>(messages: AsyncIterable<T>) {
  try {
    yield* messages;
  } catch (error) {
    throw ownError(error);
  }
}

/** Each call gets an error of its own: one error may end several calls, of a batch for example, and headers are added to it. */
function ownError(error: unknown): ConnectError {
  const shared = mapError(error);
  const own = new ConnectError(shared.rawMessage, shared.code, undefined, undefined, shared.cause);
  own.details = [...shared.details];
  return own;
}
