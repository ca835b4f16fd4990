import type { Execution, Observation } from "./execution.ts";
import type { JobSpec, RetryPolicy } from "./job-spec.ts";

/** The next step of a replica after its execution has ended. */
export type ReplicaNext =
  /** There is nothing more to do. */
  | { readonly kind: "done" }
  /** It failed permanently. */
  | { readonly kind: "given-up" }
  /**
   * Start another execution, but not before the given time. `attempt` is the number of times that the replica has
   * failed.
   */
  | { readonly kind: "again"; readonly attempt: number; readonly notBeforeMs: number };

/** How long a service or daemon must run before earlier failures no longer count, in milliseconds. */
export const STABLE_RUN_MS = 600_000;

/** Number of failed executions on a node after which a job avoids the node. */
export const FAILURES_TO_AVOID = 2;

const FAILURES: ReadonlySet<string> = new Set([
  ...["EXITED", "SIGNALLED", "OOM", "START_FAILED", "CHECK_FAILED", "DEADLINE_EXCEEDED"],
]);

/** Whether an end is a failure of the execution itself. Losses, drains and stops by people are not failures. */
export function isFailure({ state, reason }: Pick<Execution, "state" | "reason">, type: JobSpec["type"]): boolean {
  if (state === "COMPLETED") return isKept(type);
  return (state === "FAILED" || state === "KILLED_OOM") && FAILURES.has(reason);
}

/**
 * How long an execution ran according to its node; null if unknown. Limited to the time since it was placed,
 * because the node's clock may have been set in between.
 */
export function ranMsOf(
  { createdAtMs, endedAtMs }: Pick<Execution, "createdAtMs" | "endedAtMs">,
  observation: Pick<Observation, "startedAtMs" | "endedAtMs"> | null,
): number | null {
  const { startedAtMs = null, endedAtMs: observedEndMs = null } = observation ?? {};
  if (startedAtMs === null || observedEndMs === null) return null;
  const placedMs = endedAtMs === null ? Number.POSITIVE_INFINITY : endedAtMs - createdAtMs;
  return Math.min(observedEndMs - startedAtMs, placedMs);
}

/** How many times in a row a replica has failed, including this execution. */
export function failuresInRow(
  { attempt }: Pick<Execution, "attempt">,
  ranMs: number | null,
  type: JobSpec["type"],
): number {
  const ranLongEnough = isKept(type) && ranMs !== null && ranMs >= STABLE_RUN_MS;
  return ranLongEnough ? 1 : attempt + 1;
}

/**
 * Decide the next step of a replica after its execution has ended.
 *
 * @param ranMs how long the execution ran according to its node; null if unknown.
 */
export function nextInPlace(
  ended: Execution,
  ranMs: number | null,
  { type, retry }: Pick<JobSpec, "type" | "retry">,
): ReplicaNext {
  const { state, reason, attempt } = ended;
  const endedAtMs = ended.endedAtMs ?? 0;
  if (isFailure(ended, type)) {
    const failures = failuresInRow(ended, ranMs, type);
    if (retry.attempts !== null && failures > retry.attempts) return { kind: "given-up" };
    return { kind: "again", attempt: failures, notBeforeMs: endedAtMs + retryWaitMs(retry, failures - 1) };
  }
  if (state === "COMPLETED") return { kind: "done" };
  if (type === "ops") return { kind: "given-up" };
  if (type === "batch" && reason === "EXECUTION_STOPPED") return { kind: "given-up" };
  return { kind: "again", attempt, notBeforeMs: 0 };
}

function isKept(type: JobSpec["type"]): boolean {
  return type === "service" || type === "daemon";
}

/** How long to wait after a failure that follows `failed` earlier failures. */
export function retryWaitMs({ backoff, intervalMs, maxMs }: RetryPolicy, failed: number): number {
  switch (backoff) {
    case "constant":
      return Math.min(intervalMs, maxMs);
    case "exponential":
      return Math.min(intervalMs * 2 ** Math.min(failed, 30), maxMs);
  }
}
