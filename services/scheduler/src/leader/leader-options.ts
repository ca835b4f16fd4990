import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { EventFeed, ReservedStore, WorkSignals } from "@rollcall/store";

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
  readonly store: ReservedStore;
  readonly feed: EventFeed;
  readonly signals: WorkSignals;
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly timing: LeaderTiming;
  readonly afterStep: (step: LeaderStep) => void | Promise<void>;
}
