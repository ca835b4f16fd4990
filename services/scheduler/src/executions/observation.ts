import type { Observation } from "@rollcall/domain";
import type { StoredExecution } from "@rollcall/store";

/** Whole reports in a row that have to lack an execution for it to be gone: the first may have been on its way. */
const REPORTS_THAT_LACK = 2;

/** What a node said as the rules have it; null for nothing. One that it has lost is gone. */
export function toObservation(seen: StoredExecution["observation"]): Observation | null {
  if (seen === null) return null;
  const { observed, missing, epoch, report, startedAtMs, endedAtMs, end, exitCode, signal, message } = seen;
  const said = { epoch, report, startedAtMs, endedAtMs, exitCode, signal, message };
  if (missing >= REPORTS_THAT_LACK && observed !== "ENDED") return { ...said, observed: "ENDED", end: "GONE" };
  return observed === "ABSENT" ? null : { ...said, observed, end };
}
