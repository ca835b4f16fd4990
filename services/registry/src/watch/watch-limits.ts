/** How much watches may take, and how often they say that they are alive. */
export interface WatchLimits {
  /**
   * A stream that sent nothing for so long, plus or minus a quarter, gets a bookmark. The contract promises 10 s at
   * most.
   */
  readonly bookmarkMs: number;
  /** Recent events that are kept in memory for all watchers together: how far a live one may fall behind. */
  readonly windowEvents: number;
  /** Recent node changes that are kept likewise. */
  readonly windowNodes: number;
  /** Most bytes of those events, and of those nodes: about a fourth of the memory that they take. */
  readonly windowBytes: number;
  /** Events of one message, and of one read of a watcher that is behind. */
  readonly batchEvents: number;
  /** Nodes of one message. */
  readonly batchNodes: number;
  /** Reads of the log by watchers that are behind, at a time: the other connections of the pool are for other calls. */
  readonly catchUpReads: number;
  /** Snapshots that are read at a time; each holds a connection. */
  readonly snapshots: number;
  /** How long a watcher may take for one message of its snapshot. */
  readonly snapshotIdleMs: number;
}

/** What is good for a registry of any size. */
export const DEFAULT_WATCH_LIMITS: WatchLimits = {
  bookmarkMs: 8_000,
  windowEvents: 20_000,
  windowNodes: 10_000,
  windowBytes: 33_554_432,
  batchEvents: 500,
  batchNodes: 100,
  catchUpReads: 3,
  snapshots: 3,
  // Sooner than Postgres ends a transaction that idles, which is after 10 s.
  snapshotIdleMs: 8_000,
};
