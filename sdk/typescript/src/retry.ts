// Decides when a failed call is retried. Does no I/O, because time and random numbers are parameters.
import { Code } from "@connectrpc/connect";
import type { RollcallError } from "./errors.ts";
import { Reason } from "./reasons.ts";

/** How many times a call is retried, and after what delays. */
export interface RetryPolicy {
  /** The maximum number of calls, including the first. 1 disables retries. */
  readonly attempts: number;
  /** The delay before the second call in milliseconds. Each further delay is twice as long. */
  readonly firstWaitMs: number;
  /** The maximum delay in milliseconds, unless the server asks for more. */
  readonly longestWaitMs: number;
}

/** The default policy. */
export const DEFAULT_RETRY: RetryPolicy = { attempts: 5, firstWaitMs: 200, longestWaitMs: 5_000 };

type Failure = Pick<RollcallError, "code" | "reason" | "retryAfterMs">;

/**
 * Milliseconds to wait before the call is retried; null if it is not retried. `attempt` is the number of calls so far.
 * `isRepeatable` says whether sending the call twice has the same effect as sending it once, because the call only
 * reads or carries a request id. `random` is in [0, 1).
 */
export function waitBeforeRetry(
  policy: RetryPolicy,
  failure: Failure,
  {
    attempt,
    isRepeatable,
    random,
  }: { readonly attempt: number; readonly isRepeatable: boolean; readonly random: number },
): number | null {
  if (attempt >= policy.attempts) return null;
  // A call refused for lack of capacity or for its revision had no effect. Any other failed call may have had an
  // effect.
  const hasNoRoom = failure.code === Code.ResourceExhausted && failure.retryAfterMs !== null;
  const isRefused = hasNoRoom || failure.reason === Reason.MIN_REVISION_AHEAD;
  // ABORTED means that an etag is outdated, so the call is not retried.
  const isPassing = failure.code === Code.Unavailable;
  if (!isRefused && !(isRepeatable && isPassing)) return null;
  const backoff = Math.min(policy.longestWaitMs, policy.firstWaitMs * 2 ** (attempt - 1)) * (0.5 + random / 2);
  return Math.max(backoff, failure.retryAfterMs ?? 0);
}

/** The minimum time limit of an attempt in milliseconds, even if the timeout of its call is shorter. */
export const SHORTEST_ATTEMPT_MS = 1_000;

/**
 * The time limit of an attempt in milliseconds; null means all of the remaining time. The first attempt is limited, so
 * that a second attempt has time left if the path is dead. `timeoutMs` is the limit of the whole call.
 */
export function attemptLimitMs(
  policy: RetryPolicy,
  {
    timeoutMs,
    attempt,
    isRepeatable,
  }: { readonly timeoutMs: number; readonly attempt: number; readonly isRepeatable: boolean },
): number | null {
  // From the second attempt on, the server gets all of the remaining time, because it may just be slow.
  if (!isRepeatable || attempt > 1 || policy.attempts <= 1) return null;
  return Math.max(timeoutMs / 3, SHORTEST_ATTEMPT_MS);
}

const BREAKS: ReadonlySet<Code> = new Set([
  Code.Unavailable,
  Code.Aborted,
  Code.Canceled,
  Code.DeadlineExceeded,
  Code.ResourceExhausted,
  Code.Unknown,
  Code.Internal,
]);
const RENEWED: ReadonlySet<string> = new Set([Reason.TOKEN_EXPIRED, Reason.TOKEN_REVOKED]);
const FIRST_BREAK_WAIT_MS = 200;
const LONGEST_BREAK_WAIT_MS = 5_000;

/**
 * Milliseconds to wait before a broken watch is reopened; null if its error is final. `breaks` is the number of breaks
 * since the last message.
 */
export function waitBeforeResume(failure: Failure, breaks: number, random: number): number | null {
  // When a token expires, the server ends the streams opened with it. The token file may already contain the next
  // token.
  const isRenewed = breaks === 1 && RENEWED.has(failure.reason);
  // With MIN_REVISION_AHEAD, the client has already forgotten that revision, so the watch can be reopened.
  const isForgotten = failure.reason === Reason.MIN_REVISION_AHEAD;
  if (!BREAKS.has(failure.code) && !isRenewed && !isForgotten) return null;
  const longest = Math.min(LONGEST_BREAK_WAIT_MS, FIRST_BREAK_WAIT_MS * 2 ** Math.min(breaks - 1, 10));
  return Math.max(longest * (0.5 + random / 2), failure.retryAfterMs ?? 0);
}
