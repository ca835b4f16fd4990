/** The header of a request with the highest revision that its caller has seen. */
export const MIN_REVISION_HEADER = "rollcall-min-revision";
/** The header of an answer with the revision that includes what it says. */
export const REVISION_HEADER = "rollcall-revision";

const DECIMAL = /^\d{1,19}$/;

/** The highest revision that a client has seen, after an answer with this header or none. */
export function seenAfter(seen: bigint, header: string | null): bigint {
  if (header === null || !DECIMAL.test(header)) return seen;
  const revision = BigInt(header);
  return revision > seen ? revision : seen;
}
