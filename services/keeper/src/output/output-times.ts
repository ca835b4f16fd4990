/** When a part of the output was received: the bytes from `offset` up to the next mark. Times are wall times. */
export interface TimeMark {
  readonly offset: number;
  readonly atMs: number;
  /** The last byte arrived before this time. */
  readonly untilMs: number;
}

/** Time within which writes share a mark. */
const PART_MS = 1_000;
/** Maximum number of marks of one stream, 24 bytes each on disk. */
export const MOST_MARKS = 8_192;
/** Number of the newest marks, which are never thinned out. */
const PRECISE_MARKS = 4_096;

/** Whether bytes written now need a new mark. */
export function needsMark(last: TimeMark | null, nowMs: number): boolean {
  // Also start a new mark when the clock was set back; otherwise, the bytes would seem older than they are.
  return last === null || nowMs < last.atMs || nowMs >= last.untilMs;
}

export function markAt(offset: number, atMs: number): TimeMark {
  return { offset, atMs, untilMs: atMs + PART_MS };
}

/** Make room for more marks: drop the marks of removed output, and every second one of the old marks. */
export function thinMarks(marks: readonly TimeMark[], heldFrom: number): readonly TimeMark[] {
  const first = Math.max(0, firstAfter(marks, heldFrom) - 1);
  const kept = marks.slice(first);
  const old = kept.slice(0, Math.max(0, kept.length - PRECISE_MARKS));
  const thinned = old.flatMap((mark, at) => {
    const next = old[at + 1];
    if (at % 2 === 1) return [];
    return [next === undefined ? mark : { ...mark, untilMs: Math.max(mark.untilMs, next.untilMs) }];
  });
  return [...thinned, ...kept.slice(old.length)];
}

/** The marks of a piece of output, up to a maximum. The piece ends at `end`, where the next mark would begin. */
export function marksOf(
  marks: readonly TimeMark[],
  piece: { readonly from: number; readonly to: number; readonly most: number },
): { readonly marks: readonly TimeMark[]; readonly end: number } {
  const { from, to, most } = piece;
  const first = Math.max(0, firstAfter(marks, from) - 1);
  const found = marks.slice(first, first + most + 1).filter(({ offset }) => offset < to);
  const beyond = found[most];
  return beyond === undefined ? { marks: found, end: to } : { marks: found.slice(0, most), end: beyond.offset };
}

/** Where the kept part of a stream begins and ends. */
interface OutputBounds {
  readonly begin: number;
  readonly end: number;
}

/**
 * The offset of the output that was written at a time or later, and whether some of it is no longer kept. Bytes with
 * unknown time are included if the bytes after them are included.
 */
export function beginSince(
  marks: readonly TimeMark[],
  sinceMs: number,
  { begin, end }: OutputBounds,
): { readonly offset: number; readonly isCut: boolean } {
  if (marks.length === 0) return { offset: begin, isCut: begin > 0 };
  const at = marks.findIndex(({ untilMs }) => untilMs > sinceMs);
  const mark = marks[at];
  if (mark === undefined) return { offset: end, isCut: false };
  // The bytes before the first mark have no known time.
  const isFirst = at === 0 && mark.atMs >= sinceMs;
  const offset = isFirst ? begin : Math.max(begin, mark.offset);
  return { offset, isCut: begin > 0 && (isFirst || mark.offset < begin) };
}

/** The first mark after an offset. */
function firstAfter(marks: readonly TimeMark[], offset: number): number {
  let [low, high] = [0, marks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((marks[middle]?.offset ?? 0) > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}
