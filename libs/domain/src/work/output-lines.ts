/** The progress of a backward search for the last lines of an output. */
export interface LineSearch {
  /** Number of line breaks to find, including the one just before the wanted lines. */
  readonly breaksLeft: number;
  /** Whether nothing has been searched yet. A line break at the very end does not start a line. */
  readonly isAtEnd: boolean;
}

const LINE_BREAK = 0x0a;

/** Start to search for the last lines of an output (at least one). */
export function searchLines(lines: number): LineSearch {
  return { breaksLeft: Math.max(1, lines), isAtEnd: true };
}

/**
 * Search the next piece. It must end where the previous piece starts. Returns the position in the piece at which
 * the wanted lines start. If the lines start before this piece, the position is null, and `next` is the state for
 * the piece before it.
 */
export function searchPiece(
  search: LineSearch,
  piece: Uint8Array,
): { readonly begin: number; readonly next: null } | { readonly begin: null; readonly next: LineSearch } {
  let { breaksLeft, isAtEnd } = search;
  let at = piece.length;
  if (isAtEnd && at > 0) {
    isAtEnd = false;
    if (piece[at - 1] === LINE_BREAK) at -= 1;
  }
  while (at > 0) {
    at = piece.lastIndexOf(LINE_BREAK, at - 1);
    if (at < 0) break;
    breaksLeft -= 1;
    if (breaksLeft === 0) return { begin: at + 1, next: null };
  }
  return { begin: null, next: { breaksLeft, isAtEnd } };
}

/** The part of an output that is missing before a piece. */
export type OutputGap =
  /** Nothing is missing. */
  | { readonly kind: "none" }
  /** This many bytes at the beginning of the output are no longer kept. */
  | { readonly kind: "beginning"; readonly bytes: bigint }
  /** This many bytes between two pieces were deleted before they could be read. */
  | { readonly kind: "between"; readonly bytes: bigint };

/** A reader's position in an output. */
export interface OutputPosition {
  /**
   * The offset of the next byte to read. Null before the first piece if the output is not read from its beginning.
   */
  readonly next: bigint | null;
  /** Whether any piece has been read. */
  readonly hasBegun: boolean;
}

/** The gap before a piece. `isCut` is as in ReadExecutionLogResponse. */
export function gapBefore(
  position: OutputPosition,
  piece: { readonly offset: bigint; readonly isCut: boolean },
): OutputGap {
  const { next, hasBegun } = position;
  if (next !== null && piece.offset > next) {
    return { kind: hasBegun ? "between" : "beginning", bytes: piece.offset - next };
  }
  // It is unknown how much of the output before the piece was requested, so all of it is reported as missing.
  const isCut = !hasBegun && piece.isCut && piece.offset > 0n;
  return isCut ? { kind: "beginning", bytes: piece.offset } : { kind: "none" };
}
