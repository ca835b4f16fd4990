/** The request header with the highest revision that the caller has seen. */
export const MIN_REVISION_HEADER = "rollcall-min-revision";
/** The response header with the revision of the log that the response reflects. */
export const REVISION_HEADER = "rollcall-revision";

const DECIMAL = /^\d{1,19}$/;

/**
 * Return the highest revision that a client has seen after a response. `header` is null if
 * the response had no such header.
 */
export function seenAfter(seen: bigint, header: string | null): bigint {
  if (header === null || !DECIMAL.test(header)) return seen;
  const revision = BigInt(header);
  return revision > seen ? revision : seen;
}
