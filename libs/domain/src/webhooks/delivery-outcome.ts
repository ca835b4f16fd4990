/** The result of one delivery attempt. */
export type Attempt =
  /** The receiver responded. `retryAfter` is the Retry-After header; null if there is none. */
  | { readonly kind: "answered"; readonly status: number; readonly retryAfter: string | null }
  /** There was no response. `error` is the cause, for people. */
  | { readonly kind: "failed"; readonly error: string };

/** What an attempt means for the delivery. */
export type DeliveryOutcome =
  | { readonly kind: "delivered" }
  /** Retry later. `retryAfterMs` is the minimum pause that the receiver asked for; 0 for none. */
  | { readonly kind: "failed"; readonly error: string; readonly retryAfterMs: number }
  /** The receiver wants no further events. */
  | { readonly kind: "gone"; readonly error: string };

/** The longest pause that a receiver can ask for, in milliseconds: an hour. */
export const MOST_RETRY_AFTER_MS = 3_600_000;
const GONE = 410;

/**
 * Evaluate an attempt. A status from 200 to 299 is a success. Redirects are failures, because they are not
 * followed.
 */
export function evaluateAttempt(attempt: Attempt): DeliveryOutcome {
  if (attempt.kind === "failed") return { kind: "failed", error: attempt.error, retryAfterMs: 0 };
  const { status, retryAfter } = attempt;
  if (status >= 200 && status <= 299) return { kind: "delivered" };
  if (status === GONE) return { kind: "gone", error: "the receiver answered 410: it no longer wants events" };
  const isRedirect = status >= 300 && status <= 399;
  const error = `the receiver answered ${status}${isRedirect ? ", and redirects are not followed" : ""}`;
  return { kind: "failed", error, retryAfterMs: retryAfterMs(retryAfter) };
}

/** Parse the number of seconds. Dates are ignored, because they depend on the receiver's clock. */
function retryAfterMs(header: string | null): number {
  if (header === null || !/^[0-9]{1,9}$/.test(header.trim())) return 0;
  return Math.min(MOST_RETRY_AFTER_MS, Number(header) * 1_000);
}
