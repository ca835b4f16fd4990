/** A position in a stream that can be found again in the engine's log. */
export interface LogMark {
  /** Time of an entry, in nanoseconds since 1970; 0 for the beginning of the log. */
  readonly atNs: bigint;
  /** Where the first entry with that time begins, in bytes since the start of the execution. */
  readonly offset: number;
}

/** How much of a stream of a log is stored. */
export interface LogPlace {
  readonly mark: LogMark;
  /** Where the next entry begins. It is before `end` while entries arrive that are already stored. */
  readonly position: number;
  /** Number of bytes in the store. */
  readonly end: number;
  /** Whether no entry has been seen since the log was opened. */
  readonly isFresh: boolean;
}

/** The beginning of every log. */
export const LOG_BEGIN: LogMark = { atNs: 0n, offset: 0 };

/** The position after a log was opened again, at or before a mark. */
export function resumeLog(mark: LogMark, end: number): LogPlace {
  // Limit the position to the end of the store, which is before the mark if the store lost its last bytes in a
  // power failure.
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
  // Skip an entry from before the mark. This applies only to the first entry. In later entries, an earlier time
  // means that the clock was set back, and the entry is new.
  if (place.isFresh && atNs < mark.atNs) return { place, from: bytes };
  // The engine has dropped the marked entry, so everything that follows is new.
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
