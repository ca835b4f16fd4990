import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { mapError } from "@rollcall/errors";

/** Turn whatever a handler throws into the error that its caller may see; see mapError(). */
export const mapErrors: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: mapped(response.message) } : response;
  } catch (error) {
    throw ownError(error);
  }
};

function mapped<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  const inner = messages[Symbol.asyncIterator]();
  const fail = (error: unknown): never => {
    throw ownError(error);
  };
  const iterator: AsyncIterator<T> = {
    next: () => inner.next().catch(fail),
    return: async (value) => (await inner.return?.(value)) ?? { done: true, value },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

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
