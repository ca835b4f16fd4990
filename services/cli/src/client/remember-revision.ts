import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { MIN_REVISION_HEADER, REVISION_HEADER, seenAfter } from "@rollcall/domain/seen-revision";

/**
 * Send the highest revision of all responses with each call, so that no service answers from an earlier state. All
 * clients of a control plane share this interceptor. Watches send no revision, because they start with the current
 * state of the database.
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
      // Send no revision with the next call, because after a restore, the log may end before the revision that was
      // seen.
      if (error instanceof ConnectError && error.code === Code.OutOfRange) seen = 0n;
      throw error;
    }
  };
}
