/** How far the search for the last lines of an output has come, which goes from the end to the beginning. */
export interface LineSearch {
  /** Line breaks still to find. The last one is the one before the wanted lines. */
  readonly breaksLeft: number;
  /** Whether nothing was searched yet: a line break at the very end begins no line. */
  readonly isAtEnd: boolean;
}

const LINE_BREAK = 0x0a;

/** Begin to search for the last lines of an output. At least one. */
export function searchLines(lines: number): LineSearch {
  return { breaksLeft: Math.max(1, lines), isAtEnd: true };
}

/**
 * Search the piece before those that were searched. Answers where in it the lines begin; null when they begin before
 * it, and then how to continue.
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

/** What of an output is missing before a piece of it. */
export type OutputGap =
  /** Nothing. */
  | { readonly kind: "none" }
  /** The beginning of the output is no longer kept: this many bytes. */
  | { readonly kind: "beginning"; readonly bytes: bigint }
  /** This many bytes between two pieces were removed before they could be read. */
  | { readonly kind: "between"; readonly bytes: bigint };

/** A reader's position in an output. */
export interface OutputPosition {
  /** The offset that comes next; null before the first piece of an output that is not read from its beginning. */
  readonly next: bigint | null;
  /** Whether a piece was read. */
  readonly hasBegun: boolean;
}

/** The gap before a piece. `isCut` is what its sender says of it: see ReadExecutionLogResponse. */
export function gapBefore(
  position: OutputPosition,
  piece: { readonly offset: bigint; readonly isCut: boolean },
): OutputGap {
  const { next, hasBegun } = position;
  if (next !== null && piece.offset > next) {
    return { kind: hasBegun ? "between" : "beginning", bytes: piece.offset - next };
  }
  // Everything before is gone. How much of that was asked for is unknown.
  const isCut = !hasBegun && piece.isCut && piece.offset > 0n;
  return isCut ? { kind: "beginning", bytes: piece.offset } : { kind: "none" };
}
