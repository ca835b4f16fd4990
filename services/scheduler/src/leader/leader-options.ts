import type { Clock, Logger } from "@rollcall/process";
import type { Following, FollowOptions, WorkSignals } from "@rollcall/store";
import type { LeaderStore } from "./leader-store.ts";

/** The steps of a leader. The process can end between any two of them. */
export type LeaderStep = "loaded" | "refreshed" | "observed" | "planned" | "committed";

/** The intervals of a leader. */
export interface LeaderTiming {
  /** Interval at which to read what nodes report if no notification arrives. */
  readonly pollMs: number;
  /** Shortest time between two ticks, to gather changes. */
  readonly gatherMs: number;
  /** Interval at which to compare the store's clock with the clock of the process. */
  readonly clockEveryMs: number;
  /**
   * Interval at which the lease is renewed, and the time without a renewal after which
   * it expires.
   */
  readonly renewEveryMs: number;
  readonly expiryMs: number;
}

export interface LeaderOptions {
  readonly record: LeaderStore;
  readonly feed: { follow(options: FollowOptions): Omit<Following, "caughtUpTo"> };
  readonly signals: Pick<WorkSignals, "follow">;
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly timing: LeaderTiming;
  readonly afterStep: (step: LeaderStep) => void | Promise<void>;
}
