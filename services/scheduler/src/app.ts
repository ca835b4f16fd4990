import { hostname } from "node:os";
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { type OwnerQuota, WorkMemory } from "@rollcall/domain";
import type { Task } from "@rollcall/process";
import { type CheckResult, createPageTokens, type PolicyTable, type ReadyReport } from "@rollcall/rpc";
import { createStoreCheck, leasedTask, SCHEDULER_LEASE, SCHEDULER_LEASE_TIMING } from "@rollcall/store";
import { NodeView } from "./jobs/node-view.ts";
import { forgetEnded } from "./leader/forget-ended.ts";
import { Leader } from "./leader/leader.ts";
import { createLeaderMetrics } from "./leader/leader-metrics.ts";
import type { LeaderOptions, LeaderTiming } from "./leader/leader-options.ts";
import { createPostgresRecord } from "./leader/leader-store.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import type { SchedulerProcess } from "./scheduler-process.ts";
import { WorkHub } from "./watch/work-hub.ts";

/** The scheduler, ready to be served on a port. */
export interface SchedulerApp {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** Background work, for a supervisor to run. */
  readonly tasks: readonly Task[];
  /** Whether the store can be reached, and whether this process leads. */
  ready(): Promise<ReadyReport>;
  close(): Promise<void>;
}

const TIMING: LeaderTiming = { pollMs: 1_000, gatherMs: 20, clockEveryMs: 10_000, ...SCHEDULER_LEASE_TIMING };

const UNLIMITED: OwnerQuota = { jobs: null, executions: null, millicores: null };

/** Create the scheduler: it decides what runs where. */
export function createApp(scheduler: SchedulerProcess): SchedulerApp {
  const { store, feed, signals, instance, clock, log, metrics } = scheduler;
  const timing = { ...TIMING, ...scheduler.timing };
  const { renewEveryMs, expiryMs } = timing;
  const { afterStep = () => {}, quota = UNLIMITED } = scheduler;
  const options: LeaderOptions = {
    record: createPostgresRecord(store.reserved, quota),
    feed,
    signals,
    instance,
    clock,
    log,
    random: Math.random,
    timing,
    afterStep,
  };
  const leader: Leader = new Leader(
    options,
    createLeaderMetrics(metrics, () => leader.isLeading),
    () => new WorkMemory(),
  );
  const leading = leasedTask({
    ...{ store: store.reserved, clock, log, renewEveryMs, expiryMs },
    claim: { name: SCHEDULER_LEASE, instance, service: "scheduler", address: hostname() },
    able: async () => feed.start(),
    work: (signal, succeeded) => leader.run(signal, succeeded),
  });
  const hub = new WorkHub({ store, signals, feed, clock });
  const nodes = new NodeView({ store, feed, log });
  const pageTokens = createPageTokens(store.clusterSecret());
  const checkRecord = createStoreCheck(store.reserved, log, clock);
  return {
    routes: createRoutes({ store, clock, log, pageTokens, hub, nodes, feed, quota }),
    services: SERVICES,
    policies: POLICIES,
    tasks: [leading, hub.task, forgetEnded({ store: store.reserved, clock, leads: () => leader.isLeading })],
    ready: async () => ({ store: await checkRecord(), scheduler: shown(leader, leading.active) }),
    close: async () => {},
  };
}

/** The result of the readiness check. A standby process is as ready as a leading one. */
function shown({ isLeading }: Leader, isActive: boolean): CheckResult {
  if (isLeading) return { ok: true, message: "leads" };
  return { ok: true, message: isActive ? "loading the store before it leads" : "stands by" };
}
