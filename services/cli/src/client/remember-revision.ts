import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { MIN_REVISION_HEADER, REVISION_HEADER, seenAfter } from "@rollcall/domain/seen-revision";

/**
 * Send the highest revision of all answers with each call, so that no service answers from an earlier state. One for
 * all clients of a control plane. Watches send none: they begin with what the database says.
 */
export function rememberRevision(): Interceptor {
  let seen = 0n;
  return (next) => async (request) => {
    if (seen > 0n && !request.stream) request.header.set(MIN_REVISION_HEADER, String(seen));
    try {
      const answer = await next(request);
      seen = seenAfter(seen, answer.header.get(REVISION_HEADER));
      return answer;
    } catch (error) {
      // The log may have been restored, and end before what was seen. The next call sends none.
      if (error instanceof ConnectError && error.code === Code.OutOfRange) seen = 0n;
      throw error;
    }
  };
}
