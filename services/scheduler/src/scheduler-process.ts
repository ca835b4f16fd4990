import type { OwnerQuota } from "@rollcall/domain";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { EventFeed, Store, WorkSignals } from "@rollcall/store";
import type { LeaderStep, LeaderTiming } from "./leader/leader-options.ts";

/** What the process gives to the scheduler. */
export interface SchedulerProcess {
  readonly store: Store;
  /** The process's feed; the process closes it after the app. */
  readonly feed: EventFeed;
  /** The process's signals; the process closes them after the app. */
  readonly signals: WorkSignals;
  /** The instance of the process's lease. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** What the jobs of each submitter can use; no limits when absent. */
  readonly quota?: OwnerQuota;
  /** Other times of the leader than the usual ones. */
  readonly timing?: Partial<LeaderTiming>;
  /** Called after each step of the leader; what it throws ends the leadership, as a crash would. */
  readonly afterStep?: (step: LeaderStep) => void | Promise<void>;
}
