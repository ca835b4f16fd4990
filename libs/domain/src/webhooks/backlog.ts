/** A subject whose events wait for one that could not be delivered. */
export interface BlockedSubject {
  readonly subject: string;
  /** The revision of that event. */
  readonly fromRevision: bigint;
  /** Wall time of the first failure. */
  readonly sinceMs: number;
  /** Attempts that failed; 0 while none has in this process, after it took over. */
  readonly failures: number;
  /** Why the last one failed, for people. */
  readonly error: string;
  /** By this process's monotonic clock. */
  readonly nextAtMs: number;
  /** Before this the receiver wants no attempt, whatever else happens to it; by the same clock. */
  readonly notBeforeMs: number;
}

/** How long failures last. Times in ms. */
export interface DeliveryTerms {
  /** The first pause; it doubles with each failure. */
  readonly baseMs: number;
  /** The longest pause. */
  readonly maxMs: number;
  /** A subject that has been blocked for so long pauses the webhook. */
  readonly pauseAfterMs: number;
}

/**
 * A webhook with so many blocked subjects begins nothing new until one of them moves. There can be somewhat more: the
 * events that are read by then are still tried.
 */
export const MOST_BLOCKED_SUBJECTS = 64;
const MOST_ERROR_LENGTH = 256;
const MOST_DOUBLINGS = 30;

/** One failed attempt to deliver an event. */
export interface FailedDelivery {
  readonly subject: string;
  readonly revision: bigint;
  readonly error: string;
  /** The shortest pause that the receiver asks for; 0 without one. */
  readonly retryAfterMs: number;
}

/** When something happens: by the wall, and by this process's monotonic clock. */
export interface Moment {
  readonly wallMs: number;
  readonly nowMs: number;
}

/**
 * A subject after a failed attempt. The pause is half to the whole of a limit that doubles, and never shorter than what
 * the receiver asks for. One that has moved on since counts its failures and its time from the new event.
 *
 * @param before null for a subject that was not blocked.
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
 * The blocked subjects after one of them was delivered at last: the receiver is there again, so those that failed while
 * it was not are due at once, or as soon as it has asked for. Each is tried once for this; those that fail again wait
 * as before.
 */
export function afterRecovery(blocked: readonly BlockedSubject[], nowMs: number): readonly BlockedSubject[] {
  return blocked.map((one) => {
    return one.nextAtMs > nowMs ? { ...one, nextAtMs: Math.max(nowMs, one.notBeforeMs) } : one;
  });
}

/** Those that are due, the ones that have waited for the longest first. */
export function dueSubjects(blocked: Iterable<BlockedSubject>, nowMs: number): readonly BlockedSubject[] {
  return [...blocked].filter((one) => one.nextAtMs <= nowMs).sort((left, right) => left.nextAtMs - right.nextAtMs);
}

/** When the next one is due, by the monotonic clock; null when none is blocked. */
export function nextDueAtMs(blocked: Iterable<BlockedSubject>): number | null {
  let next: number | null = null;
  for (const { nextAtMs } of blocked) next = next === null ? nextAtMs : Math.min(next, nextAtMs);
  return next;
}

/** The subject that has been blocked for too long, so that the webhook is to be paused; null when none has. */
export function overdueSubject(
  blocked: Iterable<BlockedSubject>,
  wallMs: number,
  { pauseAfterMs }: DeliveryTerms,
): BlockedSubject | null {
  let oldest: BlockedSubject | null = null;
  for (const one of blocked) if (oldest === null || one.sinceMs < oldest.sinceMs) oldest = one;
  return oldest !== null && oldest.failures > 0 && wallMs - oldest.sinceMs >= pauseAfterMs ? oldest : null;
}

/** Where a webhook is when the log was compacted: what it had not delivered by then is lost to it. */
export interface CompactedPlace {
  /** The cursor as it is to be. */
  readonly revision: bigint;
  readonly blocked: readonly BlockedSubject[];
  /** The first and the last revision that may be lost; null when nothing is. */
  readonly lost: { readonly from: bigint; readonly through: bigint } | null;
}

/** Move a webhook's place behind what was compacted. */
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
