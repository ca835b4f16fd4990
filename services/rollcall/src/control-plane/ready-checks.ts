import type { CheckResult } from "@rollcall/rpc";
import type { LeaseKeeper, Store } from "@rollcall/store";

/** A lease is renewed every 2 s: twice as late is worth a word, and long before the lease is in doubt. */
const LATE_RENEWAL_MS = 5_000;
/** A burst of calls waits for milliseconds. */
const LONG_WAIT_MS = 1_000;
/** Statements take milliseconds, and upkeep seconds; after 15 s they are ended. */
const LONG_STATEMENT_MS = 5_000;

/** Whether the process holds its lease. A renewal is a commit, so it shows a database that answers and commits late. */
export function leaseCheck(
  { held, renewedAtMs }: Pick<LeaseKeeper, "held" | "renewedAtMs">,
  nowMs: number,
): CheckResult {
  const since = renewedAtMs === null ? "" : `, renewed ${secondsOf(nowMs - renewedAtMs)} ago`;
  if (!held) return { ok: false, message: `not held for certain${since}` };
  if (renewedAtMs === null || nowMs - renewedAtMs < LATE_RENEWAL_MS) return { ok: true, message: "held" };
  const message = `held${since}: the database commits slowly (its disk, a synchronous standby or a lock)`;
  return { ok: true, degraded: true, message };
}

/** Whether anything waits long for a connection to the database, or for its answer. */
export function connectionsCheck(pools: ReturnType<Store["use"]>): CheckResult {
  const texts = pools.map(({ lane, inUse, size, waiting, waitingMs, statementMs }) => {
    const waits =
      waitingMs >= LONG_WAIT_MS ? `, ${waiting} wait for one, lately for up to ${secondsOf(waitingMs)}` : "";
    const late = statementMs >= LONG_STATEMENT_MS ? `, a statement has no answer for ${secondsOf(statementMs)}` : "";
    return { text: `${lane}: ${inUse} of ${size} in use${waits}${late}`, isSlow: `${waits}${late}` !== "" };
  });
  const message = texts.map(({ text }) => text).join("; ");
  return texts.some(({ isSlow }) => isSlow) ? { ok: true, degraded: true, message } : { ok: true, message };
}

function secondsOf(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
