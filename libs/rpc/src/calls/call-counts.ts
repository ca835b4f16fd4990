/** For whom a call is counted. */
export type CallParty =
  | { readonly kind: "caller"; readonly name: string }
  | {
      readonly kind: "arriving" | "stranger" | "node" | "replica";
      /** HOST:PORT. */
      readonly peer: string;
    };

/** What counts the calls under way of each party. The domain's CallPlaces is one. */
export interface CallCounts {
  /** Take a place until leave() is called with the same; false when there is none. */
  enter(party: CallParty, isStream: boolean): boolean;
  leave(party: CallParty, isStream: boolean): void;
  /** Most calls under way of a party. */
  limitOf(party: CallParty, isStream: boolean): number;
  /**
   * In which row a call with one answer waits for its turn to work, and how many of that row work at a time; null for
   * none.
   */
  rowOf(party: CallParty): { readonly key: string; readonly most: number } | null;
}
