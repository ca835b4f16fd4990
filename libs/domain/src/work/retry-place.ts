import type { ExecutionRecord, Observation } from "./execution.ts";
import type { JobSpec, RetryPolicy } from "./job-spec.ts";

/** What happens to a place in a job after an execution there has ended. */
export type PlaceNext =
  /** There is nothing more to do. */
  | { readonly kind: "done" }
  /** It failed for good. */
  | { readonly kind: "given-up" }
  /** Another execution, not before a time. `attempt` says how often the place has failed. */
  | { readonly kind: "again"; readonly attempt: number; readonly notBeforeMs: number };

/** A service that ran for so long counts as well again: what failed before no longer counts. */
export const RAN_WELL_MS = 600_000;

/** Failures of the job's executions on a node by which it is avoided. */
export const FAILURES_TO_AVOID = 2;

const FAILURES: ReadonlySet<string> = new Set([
  ...["EXITED", "SIGNALLED", "OOM", "START_FAILED", "CHECK_FAILED", "DEADLINE_EXCEEDED"],
]);

/** Whether an end is the execution's own failure: losses, drains and what people stop are none. */
export function isFailure(
  { state, reason }: Pick<ExecutionRecord, "state" | "reason">,
  type: JobSpec["type"],
): boolean {
  if (state === "COMPLETED") return isKept(type);
  return (state === "FAILED" || state === "KILLED_OOM") && FAILURES.has(reason);
}

/**
 * How long an execution ran, by its node; null when that is not known. At most as long as it was placed: its node's
 * clock may have stepped meanwhile.
 */
export function ranMsOf(
  { createdAtMs, endedAtMs }: Pick<ExecutionRecord, "createdAtMs" | "endedAtMs">,
  observation: Pick<Observation, "startedAtMs" | "endedAtMs"> | null,
): number | null {
  const { startedAtMs = null, endedAtMs: observedEndMs = null } = observation ?? {};
  if (startedAtMs === null || observedEndMs === null) return null;
  const placedMs = endedAtMs === null ? Number.POSITIVE_INFINITY : endedAtMs - createdAtMs;
  return Math.min(observedEndMs - startedAtMs, placedMs);
}

/** How often in a row a place has failed, with the failure of this execution. */
export function failuresInRow(
  { attempt }: Pick<ExecutionRecord, "attempt">,
  ranMs: number | null,
  type: JobSpec["type"],
): number {
  const ranWell = isKept(type) && ranMs !== null && ranMs >= RAN_WELL_MS;
  return ranWell ? 1 : attempt + 1;
}

/**
 * What follows the end of an execution in its place.
 *
 * @param ranMs how long it ran, by its node; null when that is not known.
 */
export function nextInPlace(
  ended: ExecutionRecord,
  ranMs: number | null,
  { type, retry }: Pick<JobSpec, "type" | "retry">,
): PlaceNext {
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

/** How long to wait after a failure, `failed` being how many there had been before it. */
export function retryWaitMs({ backoff, intervalMs, maxMs }: RetryPolicy, failed: number): number {
  switch (backoff) {
    case "constant":
      return Math.min(intervalMs, maxMs);
    case "exponential":
      return Math.min(intervalMs * 2 ** Math.min(failed, 30), maxMs);
  }
}
