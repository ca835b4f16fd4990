/** Limits and intervals of watches. */
export interface WatchLimits {
  /** A stream that is silent for this time, plus or minus a quarter, gets a bookmark. The API promises 10 s at most. */
  readonly bookmarkMs: number;
  /**
   * The number of recent events in memory, for all watchers together. A live watcher can fall behind by this many
   * events.
   */
  readonly windowEvents: number;
  /** The number of recent node changes in memory, for all watchers together. */
  readonly windowNodes: number;
  /**
   * The maximum total size of the recent events, and of the recent node changes. They occupy about four times as much
   * memory.
   */
  readonly windowBytes: number;
  /** The maximum number of events in one message, and in one read of a watcher that is behind. */
  readonly batchEvents: number;
  /** The maximum number of nodes in one message. */
  readonly batchNodes: number;
  /**
   * The maximum number of concurrent reads of the log by watchers that are behind. The pool's other connections are for
   * other calls.
   */
  readonly catchUpReads: number;
  /** The maximum number of concurrent reads of snapshots. Each holds a connection. */
  readonly snapshots: number;
  /** How long a watcher can take for one message of its snapshot. */
  readonly snapshotIdleMs: number;
}

/** Limits that suit a registry of any size. */
export const DEFAULT_WATCH_LIMITS: WatchLimits = {
  bookmarkMs: 8_000,
  windowEvents: 20_000,
  windowNodes: 10_000,
  windowBytes: 33_554_432,
  batchEvents: 500,
  batchNodes: 100,
  catchUpReads: 3,
  snapshots: 3,
  // Use less than the 10 s after which Postgres ends an idle transaction.
  snapshotIdleMs: 8_000,
};
