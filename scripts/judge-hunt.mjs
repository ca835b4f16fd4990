/**
 * Judge what came of the search for a mutant.
 *
 * @param {{ found: string | null, isTooLong: boolean, survives?: string, hangs?: string }} hunt `found`: the broken
 *   invariant, null for none; `isTooLong`: the search was ended before it ended itself; `survives` and `hangs`: why the
 *   patch says so of its mutant, if it does.
 * @returns {{ isCaught: boolean, isExpected: boolean, says: string }} whether the mutant was noticed, whether that is
 *   what its patch says, and what to print.
 */
export function judgeHunt({ found, isTooLong, survives, hangs }) {
  if (isTooLong) {
    const isCaught = hangs !== undefined;
    return { isCaught, isExpected: isCaught, says: hangs ?? "the search did not end in time, and has found nothing" };
  }
  if (found !== null) return { isCaught: true, isExpected: survives === undefined && hangs === undefined, says: found };
  return { isCaught: false, isExpected: survives !== undefined, says: survives ?? "not noticed" };
}
