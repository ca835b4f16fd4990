// When a call that failed is made again. Pure: time and random numbers are passed in.
import { Code } from "@connectrpc/connect";
import type { RollcallError } from "./errors.ts";
import { Reason } from "./reasons.ts";

/** How often, and how long after a failure, a call is made again. */
export interface RetryPolicy {
  /** Calls in total, the first included. 1 turns retries off. */
  readonly attempts: number;
  /** Milliseconds before the second call; each further wait is twice the one before. */
  readonly firstWaitMs: number;
  /** Milliseconds that no wait exceeds, unless the server asks for more. */
  readonly longestWaitMs: number;
}

/** What a client keeps to unless it is told otherwise. */
export const DEFAULT_RETRY: RetryPolicy = { attempts: 5, firstWaitMs: 200, longestWaitMs: 5_000 };

type Failure = Pick<RollcallError, "code" | "reason" | "retryAfterMs">;

/**
 * Milliseconds to wait before the call is made again; null where it is not. `attempt` counts the calls so far.
 * `isRepeatable` says that the same call twice has one effect: it only reads, or carries a request id. `random` is in
 * [0, 1).
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
  // A call that was refused for lack of room, or for its revision, had no effect. Any other may have had one.
  const hasNoRoom = failure.code === Code.ResourceExhausted && failure.retryAfterMs !== null;
  const isRefused = hasNoRoom || failure.reason === Reason.MIN_REVISION_AHEAD;
  // ABORTED is not among them: it says that an etag is of another version.
  const isPassing = failure.code === Code.Unavailable;
  if (!isRefused && !(isRepeatable && isPassing)) return null;
  const backoff = Math.min(policy.longestWaitMs, policy.firstWaitMs * 2 ** (attempt - 1)) * (0.5 + random / 2);
  return Math.max(backoff, failure.retryAfterMs ?? 0);
}

/** Milliseconds that an attempt is given at least, however short its call may take. */
export const SHORTEST_ATTEMPT_MS = 1_000;

/**
 * Milliseconds that an attempt may take, so that a first one over a dead path leaves time for another; null for all the
 * time that its call has left. `timeoutMs` is what the call may take in total.
 */
export function attemptLimitMs(
  policy: RetryPolicy,
  {
    timeoutMs,
    attempt,
    isRepeatable,
  }: { readonly timeoutMs: number; readonly attempt: number; readonly isRepeatable: boolean },
): number | null {
  // A server that is merely slow gets the rest of the time from the second attempt on.
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
 * Milliseconds to wait before a watch that broke is opened again; null where its error is final. `breaks` counts the
 * breaks since the last message.
 */
export function waitBeforeResume(failure: Failure, breaks: number, random: number): number | null {
  // A token that ends, ends the streams that were opened with it; its file may have the next one.
  const isRenewed = breaks === 1 && RENEWED.has(failure.reason);
  // The client has forgotten the revision by now.
  const isForgotten = failure.reason === Reason.MIN_REVISION_AHEAD;
  if (!BREAKS.has(failure.code) && !isRenewed && !isForgotten) return null;
  const longest = Math.min(LONGEST_BREAK_WAIT_MS, FIRST_BREAK_WAIT_MS * 2 ** Math.min(breaks - 1, 10));
  return Math.max(longest * (0.5 + random / 2), failure.retryAfterMs ?? 0);
}
