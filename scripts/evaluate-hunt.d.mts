/** What came of the search for a mutant, and what its patch says of it. */
export interface Hunt {
  /** The broken invariant; null for none. */
  readonly found: string | null;
  /** Whether the search was ended before it ended itself. */
  readonly isTooLong: boolean;
  readonly survives?: string;
  readonly hangs?: string;
}

/** Judge whether a mutant was noticed, and whether that is what its patch says. */
export function evaluateHunt(hunt: Hunt): {
  readonly isCaught: boolean;
  readonly isExpected: boolean;
  readonly says: string;
};
