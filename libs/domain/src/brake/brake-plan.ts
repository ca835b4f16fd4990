import type { BrakeCounts, BrakeMode } from "./brake.ts";
import type { BrakeSums } from "./brake-sums.ts";

/** One group's brake in the store. */
export interface BrakeRow {
  readonly group: string;
  readonly mode: BrakeMode;
  /** When the mode was set: wall time, for display. */
  readonly sinceMs: number;
  /**
   * The group's size when the storm began. Valid while the mode is not NORMAL.
   */
  readonly size: number;
  /** Losses up to this number no longer count. */
  readonly windowLoss: number;
  /**
   * The operator's freeze, which stops all releases; null if the brake is not
   * frozen.
   */
  readonly frozen: BrakeFreeze | null;
  /**
   * How many times operators have ordered the release of all pending reactions.
   */
  readonly orders: number;
  /** How many of these orders have been carried out. */
  readonly followed: number;
  /** The number of the last loss that the latest order covers. */
  readonly orderedLoss: number;
  /** The operator who gave the latest order. */
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

/** Which losses to count. Losses are numbered in order of occurrence. */
export interface BrakeMarks {
  /**
   * Losses up to this number are settled: since then, every replica has reported.
   */
  readonly settled: number;
  /** The window contains the losses with numbers above this one. */
  readonly window: number;
  /** Like `window`, for groups (or the cluster) whose window differs. */
  readonly windows: ReadonlyMap<string, number>;
}

/** Nodes of one group that were lost and are still lost. */
export interface GroupLosses {
  /** The group's name; "" for nodes without a group. */
  readonly group: string;
  /** Nodes lost since the group's window began. */
  readonly lost: number;
  /** Nodes lost since the cluster's window began. */
  readonly lostOfCluster: number;
  /** Nodes lost too recently for the loss to be settled. */
  readonly unsettled: number;
  /** Nodes whose reaction is pending, whenever they were lost. */
  readonly pending: number;
}

/** The result of one scan of the store. */
export interface BrakeReading {
  /**
   * The latest reports of replicas with live leases, keyed by replica instance.
   */
  readonly reports: ReadonlyMap<string, BrakeSums>;
  readonly losses: readonly GroupLosses[];
  /** The highest loss number; 0 for none. */
  readonly lastLoss: number;
  readonly rows: readonly BrakeRow[];
}

/** A change to a brake, to write to the store. */
export interface BrakeChange {
  readonly group: string;
  readonly before: BrakeMode;
  readonly after: BrakeMode;
  /**
   * Whether the change has an effect; false while an operator has frozen the
   * brake.
   */
  readonly isShown: boolean;
  readonly size: number;
  readonly windowLoss: number;
  readonly counts: BrakeCounts;
  /** The operator's order that caused the change; null if none did. */
  readonly order: BrakeRow | null;
}

/** Reactions of one group that can be released, the oldest first. */
export interface BrakeRelease {
  /** The group's name; "" for nodes without a group. */
  readonly group: string;
  readonly most: number;
  /** Release only losses up to this number. */
  readonly upTo: number;
  /** The stricter of two brakes: the group's and the cluster's. */
  readonly brake: "NORMAL" | "PARTIAL";
}

/** Everything to write after one scan. */
export interface BrakePlan {
  readonly changes: readonly BrakeChange[];
  /**
   * Operators' orders to carry out. Each releases all reactions that were pending
   * when it was given.
   */
  readonly orders: readonly BrakeRow[];
  readonly releases: readonly BrakeRelease[];
  /** Groups whose brake row can be deleted because it equals the default. */
  readonly forgotten: readonly string[];
}
