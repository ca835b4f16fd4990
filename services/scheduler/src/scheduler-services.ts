import type { OwnerQuota } from "@rollcall/domain";
import type { Clock, Logger } from "@rollcall/process";
import type { PageTokens } from "@rollcall/rpc";
import type { CallStore } from "@rollcall/store";
import type { NodeView } from "./jobs/node-view.ts";
import type { WorkHub } from "./watch/work-hub.ts";

/** The objects that the scheduler's methods use. */
export interface SchedulerServices {
  readonly store: CallStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly pageTokens: PageTokens;
  readonly hub: WorkHub;
  /** The nodes that jobs are planned against. */
  readonly nodes: NodeView;
  /** The resources that the jobs of each submitter can use. */
  readonly quota: OwnerQuota;
}
