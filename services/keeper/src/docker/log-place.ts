/** A place in a stream that can be found again in the engine's log. */
export interface LogMark {
  /** The time of an entry, in nanoseconds since 1970; 0 for the begin of the log. */
  readonly atNs: bigint;
  /** Where the first entry of that time begins, in bytes since the execution began. */
  readonly offset: number;
}

/** How far a stream of a log has been taken. */
export interface LogPlace {
  readonly mark: LogMark;
  /** Where the next entry begins. Before `end` while entries come that were taken already. */
  readonly position: number;
  /** Bytes that are in the store. */
  readonly end: number;
  /** Whether no entry was seen since the log was opened. */
  readonly isFresh: boolean;
}

/** The begin of every log. */
export const LOG_BEGIN: LogMark = { atNs: 0n, offset: 0 };

/** A place from which a log is read that was opened again at a mark, or before it. */
export function resumeLog(mark: LogMark, end: number): LogPlace {
  // A store that lost its last bytes with the power has less than the mark says.
  const { atNs, offset } = mark;
  return { mark: { atNs, offset: Math.min(offset, end) }, position: Math.min(offset, end), end, isFresh: true };
}

/** Decide which bytes of an entry are new: those from `from` on. */
export function takeEntry(
  place: LogPlace,
  atNs: bigint,
  bytes: number,
): { readonly place: LogPlace; readonly from: number } {
  const { mark, end } = place;
  // Later a lower time is that of a clock that was set back, and its entry is new.
  if (place.isFresh && atNs < mark.atNs) return { place, from: bytes };
  // The engine has dropped the entry that was marked: what comes now is new.
  const isLost = place.isFresh && mark.atNs > 0n && atNs > mark.atNs;
  const position = isLost ? end : place.position;
  const from = Math.min(bytes, Math.max(0, end - position));
  const next = position + bytes;
  return {
    place: {
      mark: atNs > mark.atNs ? { atNs, offset: position } : mark,
      position: next,
      end: Math.max(end, next),
      isFresh: false,
    },
    from,
  };
}
