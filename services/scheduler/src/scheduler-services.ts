import type { OwnerQuota } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import type { PageTokens } from "@rollcall/rpc";
import type { CallStore } from "@rollcall/store";
import type { NodeView } from "./jobs/node-view.ts";
import type { WorkHub } from "./watch/work-hub.ts";

/** What the scheduler's methods work with. */
export interface SchedulerServices {
  readonly store: CallStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly pageTokens: PageTokens;
  readonly hub: WorkHub;
  /** What jobs can be planned against. */
  readonly nodes: NodeView;
  /** What the jobs of each submitter can use. */
  readonly quota: OwnerQuota;
}
