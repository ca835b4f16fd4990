import type { BrakeCounts, BrakeMode } from "./brake.ts";
import type { BrakeSums } from "./brake-sums.ts";

/** What the record keeps of one group's brake. */
export interface BrakeRow {
  readonly group: string;
  readonly mode: BrakeMode;
  /** Since when that is the mode: wall time, for display. */
  readonly sinceMs: number;
  /** Of the window in which the storm began, while the mode is not NORMAL. */
  readonly size: number;
  /** Losses up to it no longer count. */
  readonly windowLoss: number;
  /** An operator's word that nothing be released. */
  readonly frozen: BrakeFreeze | null;
  /** How many times operators have ordered to let everything go that was pending. */
  readonly orders: number;
  /** The last of these orders that was carried out. */
  readonly followed: number;
  /** The last loss that the last order is about. */
  readonly orderedLoss: number;
  /** Who gave it. */
  readonly orderedBy: string;
  readonly orderReason: string;
}

/** Who froze a brake, when and why. */
export interface BrakeFreeze {
  /** Wall time, for display. */
  readonly sinceMs: number;
  readonly actor: string;
  readonly reason: string;
}

/** Which losses to count. Losses are numbered in their order. */
export interface BrakeMarks {
  /** Losses up to it are settled: every replica has reported since. */
  readonly settled: number;
  /** The losses of the window are above it. */
  readonly window: number;
  /** The same for groups, and the cluster, whose window is another one. */
  readonly windows: ReadonlyMap<string, number>;
}

/** Nodes of one group that were lost and still are. */
export interface GroupLosses {
  /** "" for nodes without a group. */
  readonly group: string;
  /** Since the group's window began. */
  readonly lost: number;
  /** Since the cluster's window began. */
  readonly lostOfCluster: number;
  /** Those after the last settled loss. */
  readonly unsettled: number;
  /** Whose reaction waits, of whatever window. */
  readonly pending: number;
}

/** One look at the record. */
export interface BrakeReading {
  /** What the replicas of live leases reported last, by instance. */
  readonly reports: ReadonlyMap<string, BrakeSums>;
  readonly losses: readonly GroupLosses[];
  /** The highest loss there is; 0 for none. */
  readonly lastLoss: number;
  readonly rows: readonly BrakeRow[];
}

/** A brake to write. */
export interface BrakeChange {
  readonly group: string;
  readonly before: BrakeMode;
  readonly after: BrakeMode;
  /** Whether it has an effect: not under an operator's freeze. */
  readonly isShown: boolean;
  readonly size: number;
  readonly windowLoss: number;
  readonly counts: BrakeCounts;
  /** The operator's order that brought it about. */
  readonly order: BrakeRow | null;
}

/** Reactions of one group that may go, the oldest first. */
export interface BrakeRelease {
  /** "" for nodes without a group. */
  readonly group: string;
  readonly most: number;
  /** Only losses up to this one. */
  readonly upTo: number;
  /** The stricter of the group's brake and the cluster's. */
  readonly brake: "NORMAL" | "PARTIAL";
}

/** What to do, without a choice left. */
export interface BrakePlan {
  readonly changes: readonly BrakeChange[];
  /** Orders of operators to carry out: everything goes that was pending. */
  readonly orders: readonly BrakeRow[];
  readonly releases: readonly BrakeRelease[];
  /** Groups whose brake is what it would be without a row. */
  readonly forgotten: readonly string[];
}
