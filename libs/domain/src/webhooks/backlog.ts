/** A subject whose events wait because an earlier event could not be delivered. */
export interface BlockedSubject {
  readonly subject: string;
  /** The revision of the event that could not be delivered. */
  readonly fromRevision: bigint;
  /** Wall time of the first failure. */
  readonly sinceMs: number;
  /** The number of failed attempts; 0 if this process has taken over and not yet tried. */
  readonly failures: number;
  /** The error of the last attempt, for people. */
  readonly error: string;
  /** When to try next, by this process's monotonic clock. */
  readonly nextAtMs: number;
  /**
   * The earliest time of the next attempt that the receiver asked for, by the same clock. Applies even after a
   * recovery.
   */
  readonly notBeforeMs: number;
}

/** How failed deliveries are retried, and for how long. Times are in milliseconds. */
export interface DeliveryTerms {
  /** The first pause. It doubles with each failure. */
  readonly baseMs: number;
  /** The longest pause. */
  readonly maxMs: number;
  /** How long a subject can be blocked before the webhook is paused. */
  readonly pauseAfterMs: number;
}

/**
 * Maximum number of a webhook's blocked subjects. At this number, the webhook starts no new deliveries until a
 * subject is delivered. The number can be slightly exceeded, because events that have already been read are still
 * tried.
 */
export const MOST_BLOCKED_SUBJECTS = 64;
const MOST_ERROR_LENGTH = 256;
const MOST_DOUBLINGS = 30;

/** One failed attempt to deliver an event. */
export interface FailedDelivery {
  readonly subject: string;
  readonly revision: bigint;
  readonly error: string;
  /** The minimum pause that the receiver asked for; 0 for none. */
  readonly retryAfterMs: number;
}

/** A moment, in wall time and by this process's monotonic clock. */
export interface Moment {
  readonly wallMs: number;
  readonly nowMs: number;
}

/**
 * The state of a subject after a failed attempt. The pause is a random time from half of a limit to the whole limit,
 * and at least as long as the receiver asked for. The limit doubles with each failure. If a different event failed
 * than before, failures and time are counted again from this event.
 *
 * @param before null if the subject was not blocked.
 * @param random01 a random number from 0 to less than 1.
 */
export function afterFailure(
  before: BlockedSubject | null,
  { subject, revision, error, retryAfterMs }: FailedDelivery,
  at: Moment,
  { baseMs, maxMs }: DeliveryTerms,
  random01: number,
): BlockedSubject {
  const isSame = before?.fromRevision === revision;
  const failures = isSame ? before.failures + 1 : 1;
  const limitMs = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, MOST_DOUBLINGS));
  const pauseMs = Math.max(retryAfterMs, Math.round(limitMs * (0.5 + random01 / 2)));
  return {
    subject,
    fromRevision: revision,
    sinceMs: isSame ? before.sinceMs : at.wallMs,
    failures,
    error: error.slice(0, MOST_ERROR_LENGTH),
    nextAtMs: at.nowMs + pauseMs,
    notBeforeMs: at.nowMs + retryAfterMs,
  };
}

/**
 * The blocked subjects after one of them was delivered. The receiver works again, so all others are due now, or as
 * soon as the receiver allows. This gives each subject one extra attempt. If the attempt fails, the subject waits as
 * before.
 */
export function afterRecovery(blocked: readonly BlockedSubject[], nowMs: number): readonly BlockedSubject[] {
  return blocked.map((one) => {
    return one.nextAtMs > nowMs ? { ...one, nextAtMs: Math.max(nowMs, one.notBeforeMs) } : one;
  });
}

/** The subjects that are due. Those that have been due longest come first. */
export function dueSubjects(blocked: Iterable<BlockedSubject>, nowMs: number): readonly BlockedSubject[] {
  return [...blocked].filter((one) => one.nextAtMs <= nowMs).sort((left, right) => left.nextAtMs - right.nextAtMs);
}

/** When the next subject is due, by the monotonic clock; null if none is blocked. */
export function nextDueAtMs(blocked: Iterable<BlockedSubject>): number | null {
  let next: number | null = null;
  for (const { nextAtMs } of blocked) next = next === null ? nextAtMs : Math.min(next, nextAtMs);
  return next;
}

/**
 * The subject that has been blocked for longest, if that is too long and the webhook must be paused; otherwise null.
 */
export function overdueSubject(
  blocked: Iterable<BlockedSubject>,
  wallMs: number,
  { pauseAfterMs }: DeliveryTerms,
): BlockedSubject | null {
  let oldest: BlockedSubject | null = null;
  for (const one of blocked) if (oldest === null || one.sinceMs < oldest.sinceMs) oldest = one;
  return oldest !== null && oldest.failures > 0 && wallMs - oldest.sinceMs >= pauseAfterMs ? oldest : null;
}

/** A webhook's position after the event log was compacted. Compacted events that had not been delivered are lost. */
export interface CompactedPlace {
  /** The new cursor. */
  readonly revision: bigint;
  readonly blocked: readonly BlockedSubject[];
  /** The first and the last revision that may be lost; null if nothing is lost. */
  readonly lost: { readonly from: bigint; readonly through: bigint } | null;
}

/** Move a webhook's position past the compacted events. */
export function afterCompaction(
  place: { readonly revision: bigint; readonly blocked: readonly BlockedSubject[] },
  compacted: bigint,
): CompactedPlace {
  const { revision, blocked } = place;
  const firsts = [revision + 1n, ...blocked.map(({ fromRevision }) => fromRevision)];
  const from = firsts.reduce((least, one) => (one < least ? one : least));
  if (from > compacted) return { revision, blocked, lost: null };
  return {
    revision: revision < compacted ? compacted : revision,
    blocked: blocked.map((one) => (one.fromRevision > compacted ? one : { ...one, fromRevision: compacted + 1n })),
    lost: { from, through: compacted },
  };
}
