import type { CheckResult } from "@rollcall/rpc";
import type { LeaseKeeper, Store } from "@rollcall/store";

/**
 * Minimum delay of a lease renewal that is reported, in milliseconds. A lease is renewed every 2 s, and is in doubt
 * only much later.
 */
const LATE_RENEWAL_MS = 5_000;
/**
 * Minimum waiting time for a connection that is reported, in milliseconds. Even in a burst, calls wait only
 * milliseconds.
 */
const LONG_WAIT_MS = 1_000;
/**
 * Minimum duration of a statement that is reported, in milliseconds. Statements take milliseconds, and those of upkeep
 * take seconds. After 15 s a statement is canceled.
 */
const LONG_STATEMENT_MS = 5_000;

/**
 * Whether the process holds its lease. A renewal is a commit, so this check also shows that the database commits
 * slowly.
 */
export function leaseCheck(
  { held, renewedAtMs }: Pick<LeaseKeeper, "held" | "renewedAtMs">,
  nowMs: number,
): CheckResult {
  const since = renewedAtMs === null ? "" : `, renewed ${secondsOf(nowMs - renewedAtMs)} ago`;
  if (!held) return { ok: false, message: `no proof that the lease is still valid${since}` };
  if (renewedAtMs === null || nowMs - renewedAtMs < LATE_RENEWAL_MS) return { ok: true, message: "held" };
  const message = `held${since}: the database commits slowly (its disk, a synchronous standby or a lock)`;
  return { ok: true, degraded: true, message };
}

/** Whether anything waits too long for a database connection or a response. */
export function connectionsCheck(pools: ReturnType<Store["use"]>): CheckResult {
  const texts = pools.map(({ lane, inUse, size, waiting, waitingMs, statementMs }) => {
    const waits =
      waitingMs >= LONG_WAIT_MS ? `, ${waiting} calls waiting, recently for up to ${secondsOf(waitingMs)}` : "";
    const late = statementMs >= LONG_STATEMENT_MS ? `, a statement has been running for ${secondsOf(statementMs)}` : "";
    return { text: `${lane}: ${inUse} of ${size} in use${waits}${late}`, isSlow: `${waits}${late}` !== "" };
  });
  const message = texts.map(({ text }) => text).join("; ");
  return texts.some(({ isSlow }) => isSlow) ? { ok: true, degraded: true, message } : { ok: true, message };
}

function secondsOf(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
