/** The outcome of one attempt to deliver, as it was seen. */
export type Attempt =
  /** The receiver answered. `retryAfter` is its header of that name; null without one. */
  | { readonly kind: "answered"; readonly status: number; readonly retryAfter: string | null }
  /** There was no answer; `error` says why, for people. */
  | { readonly kind: "failed"; readonly error: string };

/** What an attempt means. */
export type DeliveryOutcome =
  | { readonly kind: "delivered" }
  /** To be tried again; `retryAfterMs` is the shortest pause that the receiver asks for, 0 without one. */
  | { readonly kind: "failed"; readonly error: string; readonly retryAfterMs: number }
  /** The receiver wants no more events at all. */
  | { readonly kind: "gone"; readonly error: string };

/** The longest pause that a receiver may ask for: an hour. */
export const MOST_RETRY_AFTER_MS = 3_600_000;
const GONE = 410;

/** Judge an attempt. Every status of 200 to 299 is a delivery; a redirect is not followed, so it is not one. */
export function judgeAttempt(attempt: Attempt): DeliveryOutcome {
  if (attempt.kind === "failed") return { kind: "failed", error: attempt.error, retryAfterMs: 0 };
  const { status, retryAfter } = attempt;
  if (status >= 200 && status <= 299) return { kind: "delivered" };
  if (status === GONE) return { kind: "gone", error: "the receiver answered 410, it wants no more events" };
  const isRedirect = status >= 300 && status <= 399;
  const error = `the receiver answered ${status}${isRedirect ? ", and redirects are not followed" : ""}`;
  return { kind: "failed", error, retryAfterMs: retryAfterMs(retryAfter) };
}

/** Seconds alone: a date would have to be compared with the receiver's clock. */
function retryAfterMs(header: string | null): number {
  if (header === null || !/^[0-9]{1,9}$/.test(header.trim())) return 0;
  return Math.min(MOST_RETRY_AFTER_MS, Number(header) * 1_000);
}
