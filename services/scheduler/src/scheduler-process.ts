import type { OwnerQuota } from "@rollcall/domain";
import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { EventFeed, Store, WorkSignals } from "@rollcall/store";
import type { LeaderStep, LeaderTiming } from "./leader/leader-options.ts";

/** The objects that the process provides to the scheduler. */
export interface SchedulerProcess {
  readonly store: Store;
  /** The process's event feed; the process closes it after the app. */
  readonly feed: EventFeed;
  /** The process's signals; the process closes them after the app. */
  readonly signals: WorkSignals;
  /** The instance that holds the process's lease. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** The resources that the jobs of each submitter can use; no limits when absent. */
  readonly quota?: OwnerQuota;
  /** Overrides of the leader's default intervals. */
  readonly timing?: Partial<LeaderTiming>;
  /** Called after each step of the leader. If it throws, the leadership ends as in a crash. */
  readonly afterStep?: (step: LeaderStep) => void | Promise<void>;
}
