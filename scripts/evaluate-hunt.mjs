/**
 * Evaluate the result of the search for a mutant.
 *
 * @param {{ found: string | null, isTooLong: boolean, survives?: string, hangs?: string }} hunt `found`: the broken
 *   invariant, null for none; `isTooLong`: whether the search was stopped after its time limit; `survives` and `hangs`:
 *   the reasons in the patch, if it expects its mutant to survive or to hang.
 * @returns {{ isCaught: boolean, isExpected: boolean, says: string }} whether the mutant was detected, whether its
 *   patch expects that, and what to print.
 */
export function evaluateHunt({ found, isTooLong, survives, hangs }) {
  if (isTooLong) {
    const isCaught = hangs !== undefined;
    return { isCaught, isExpected: isCaught, says: hangs ?? "the search timed out without a result" };
  }
  if (found !== null) return { isCaught: true, isExpected: survives === undefined && hangs === undefined, says: found };
  return { isCaught: false, isExpected: survives !== undefined, says: survives ?? "not noticed" };
}
