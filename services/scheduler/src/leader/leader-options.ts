import type { Clock, Logger } from "@rollcall/process";
import type { Following, FollowOptions, WorkSignals } from "@rollcall/store";
import type { LeaderRecord } from "./leader-record.ts";

/** The steps of a leader, between any two of which it may end. */
export type LeaderStep = "loaded" | "refreshed" | "observed" | "planned" | "committed";

/** How often a leader looks. */
export interface LeaderTiming {
  /** How often what nodes say is looked at without a notification. */
  readonly pollMs: number;
  /** Shortest time between two looks: what is committed meanwhile goes along. */
  readonly gatherMs: number;
  /** How often the record's clock is compared with that of the process. */
  readonly clockEveryMs: number;
  /** Renewals of the lease, and how long it lasts without. */
  readonly renewEveryMs: number;
  readonly expiryMs: number;
}

/** What a leader needs. */
export interface LeaderOptions {
  readonly record: LeaderRecord;
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
