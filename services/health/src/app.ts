import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { ExecutionReportSchema, HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { replicaInterest, unitedInterest } from "@rollcall/domain";
import type { ReplicaAuthenticator } from "@rollcall/identity";
import { Loop, type Task } from "@rollcall/process";
import { createRequestValidator, type GrpcRoute, type PolicyTable, type ReadyReport, StrangerLog } from "@rollcall/rpc";
import { type LeaseReport, withdraw } from "@rollcall/store";
import { BrakeCounter } from "./brake/brake-counter.ts";
import { BrakeDecider, decideBrakeTask } from "./brake/brake-decider.ts";
import { createBrakeRecord } from "./brake/brake-record.ts";
import { ConditionKeeper, keepConditionsTask } from "./conditions/condition-keeper.ts";
import { policyOf } from "./config.ts";
import { createCore } from "./core.ts";
import type { HealthProcess } from "./health-process.ts";
import { Advertiser, advertiseTask, type Endpoints } from "./internal/advertise.ts";
import { connectPeers } from "./internal/connect-peers.ts";
import type { InternalServices } from "./internal/internal-methods.ts";
import { createInternalRoutes, INTERNAL_POLICIES, INTERNAL_SERVICES, replicasOnly } from "./internal/routes.ts";
import { createHealthMetrics } from "./metrics.ts";
import { followPoliciesTask, POLICY_INTEREST, PolicyFollower } from "./policy/policy-follower.ts";
import { pushSettingsTask, SettingsPusher } from "./policy/push-settings.ts";
import { ClusterTotals } from "./query/cluster-totals.ts";
import { clearDuplicatesTask } from "./record/clear-duplicates.ts";
import { RECORD_RETRY } from "./record/health-record.ts";
import { InfoWriter, writeNodeInfoTask } from "./record/info-writer.ts";
import { createPostgresRecord } from "./record/postgres-record.ts";
import type { HeldNode } from "./replica/held-node.ts";
import type { Replica } from "./replica/replica.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import { createAgentRoutes } from "./stream/agent-routes.ts";
import { DEFAULT_STREAM_LIMITS, type StreamHost } from "./stream/agent-stream.ts";
import { UnaryDesk } from "./unary/unary-desk.ts";
import { HealthWatches } from "./watch/health-watches.ts";
import { LogDesk } from "./work/log-desk.ts";
import { createPostgresWork } from "./work/postgres-work.ts";
import { WorkDesk } from "./work/work-desk.ts";

/** Health, ready to be put behind its two ports. */
export interface HealthApp {
  /** The readers' side. */
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** What other replicas call, on a port of its own: see Endpoints.internalAddress. */
  readonly internal: Pick<HealthApp, "routes" | "services" | "policies"> & {
    readonly authenticateReplica: ReplicaAuthenticator;
  };
  /** The agents' side, for createGrpcServer(). */
  readonly agentRoutes: readonly GrpcRoute[];
  /** Background work, for a supervisor to run. */
  readonly tasks: readonly Task[];
  /** What the nodes' states depend on, for tests and for looking into a running process. */
  readonly replica: Replica;
  /** Settle a node's conditions now instead of within seconds; for tests. */
  keepConditions(node: HeldNode): void;
  /** Whether agents can be admitted. */
  ready(): ReadyReport;
  /** What each renewal of the process's lease reports, see LeaseKeeperOptions. Counts at each call. */
  leaseReport(): LeaseReport;
  /** Called by the process's lease keeper, see LeaseKeeperOptions. */
  onLeaseHeld(): void;
  /** Likewise: no node is judged until the lease is held again. */
  onLeaseDoubt(doubt: { readonly sinceMs: number }): void;
  /** Advertise where this replica can be reached. */
  advertise(endpoints: Endpoints): void;
  /**
   * Admit no further agent, and move the present ones to other replicas while they are still served here, for up to ten
   * seconds. Resolves at once without other replicas. The first step of a graceful end.
   */
  drain(): Promise<void>;
  /**
   * End every stream, each with a time to reconnect, and write what is unwritten, within 5 s. Call it before the
   * agents' port is closed and the lease is released.
   */
  close(): Promise<void>;
}

const CLOSE_WITHIN_MS = 5_000;
/** How often to look for changed work without a notification: one query, however many nodes are held. */
const WORK_POLL_MS = 2_000;

/** Create health: who is well. Its parts know each other by callbacks; none is called before all parts exist. */
export function createApp(deps: HealthProcess): HealthApp {
  const { instance, clock, log, config, random = Math.random } = deps;
  const store = deps.store.reserved;
  const loops = { clock, retry: RECORD_RETRY };
  const validator = createRequestValidator([HelloSchema, NodeInfoSchema, ExecutionReportSchema]);
  const metrics = createHealthMetrics(deps.metrics, () => ({
    sessions: replica.nodes.sessions,
    nodes: replica.nodes.size,
    beats: replica.beats,
    hellosQueued: core.desk.queued,
    transitionsQueued: core.transitions.queued,
    stretch: replica.policies.pacer.factor,
  }));
  const peers = connectPeers({ ...deps, store });
  const core = createCore({
    ...{ instance, peers, config, clock, log, metrics, random, validator },
    gatherMs: deps.gatherMs,
    record: createPostgresRecord({ store, feed: deps.feed, instance }),
    failures: deps.failures,
    policiesKnown: () => policies.ready(),
    groupOf: (node) => brake.groupOf(node),
    onLabelsChanged: (node) => {
      settings.add(node);
      pushing.call();
    },
    onConditionsChanged: (node) => keepConditions(node),
  });
  const { replica, desk } = core;
  const policies = new PolicyFollower({
    store,
    instance,
    configured: policyOf(config),
    policies: replica.policies,
    onChanged: (nodeId) => {
      settings.addUnsettled(nodeId);
      pushing.call();
    },
  });
  const settings = new SettingsPusher({ store, replica, clock });
  const pushing = pushSettingsTask(settings, loops);
  // Node information may wait behind calls.
  const infos = new InfoWriter({ store: deps.store, replica, validator, onQueued: () => informing.call() });
  const informing = writeNodeInfoTask(infos, loops);
  const keeper = new ConditionKeeper({ store, replica, log });
  const keeping = keepConditionsTask(keeper, loops);
  const keepConditions = (node: HeldNode) => {
    keeper.add(node);
    keeping.call();
  };
  const advertiser = new Advertiser({ store, instance, log });
  const advertisement = advertiseTask(advertiser, loops);
  const brake = new BrakeCounter({ replica, label: config["Orchestrator.Brake.GroupLabel"] });
  const decider = new BrakeDecider({
    ...deps,
    record: createBrakeRecord({ store, instance, log }),
    ...deps.brakeTimes,
  });
  const brakeLease = { store, log, instance, clock: deps.brakeTimes?.clock ?? clock, ...renewalTimes(deps) };
  const work = new WorkDesk({ record: createPostgresWork(store), replica, validator, loops });
  const unsubscribe = deps.signals.follow("WANTED", () => work.observe());
  const polling = new Loop({ name: "poll-work", everyMs: WORK_POLL_MS, clock, turn: async () => work.observe() });
  const host: StreamHost = {
    ...{ replica, clock, log, work },
    authorities: deps.authorities ?? null,
    strangers: deps.strangers ?? new StrangerLog({ log }),
    limits: { ...DEFAULT_STREAM_LIMITS, ...deps.limits },
    onBeat: deps.onBeat ?? null,
    onWelcomed: deps.onWelcomed ?? null,
    clusterId: () => store.clusterId(),
    logId: () => store.logId(),
    onHello: desk.submit.bind(desk),
    onNodeInfo: infos.submit.bind(infos),
  };
  const logs = new LogDesk({ clock, ...(deps.onOutput === undefined ? {} : { onTaken: deps.onOutput }) });
  const shared = { store: deps.store, replica, clock, log, peers };
  const methods: InternalServices = {
    ...shared,
    ...{ random, logs },
    totals: new ClusterTotals(shared),
    unary: new UnaryDesk({ store, host }),
    watches: new HealthWatches({ ...shared, feed: deps.feed }),
  };
  const following = deps.feed.follow({
    name: "health",
    interest: unitedInterest([replicaInterest(instance), POLICY_INTEREST]),
    gatherMs: deps.gatherMs,
    deliver: (events) => {
      policies.observe(events);
      core.observe(events);
    },
  });
  return {
    routes: createRoutes(methods),
    services: SERVICES,
    policies: POLICIES,
    internal: {
      routes: createInternalRoutes(methods),
      services: INTERNAL_SERVICES,
      policies: INTERNAL_POLICIES,
      authenticateReplica: replicasOnly(methods),
    },
    agentRoutes: createAgentRoutes(host, logs),
    tasks: [
      ...core.tasks,
      ...work.tasks,
      polling,
      ...[informing, followPoliciesTask(policies, loops), pushing, advertisement, keeping],
      clearDuplicatesTask({ store, replica, clock, log }),
      decideBrakeTask(decider, brakeLease),
    ],
    replica,
    keepConditions,
    ready: () => ({ agents: readiness(replica) }),
    leaseReport: () => ({ sessions: replica.nodes.sessions, brake: brake.count() }),
    onLeaseHeld: () => {
      core.leaseHeld();
      advertiser.repeat();
      advertisement.call();
    },
    onLeaseDoubt: ({ sinceMs }) => core.leaseDoubted(sinceMs),
    advertise: (endpoints) => {
      advertiser.set(endpoints);
      advertisement.call();
    },
    drain: () => core.drain(() => advertiser.hideFromAgents()),
    close: async () => {
      core.close();
      await within(deps, CLOSE_WITHIN_MS, async () => {
        await core.transitions.flush();
        await withdraw(store.db, instance);
      });
      following.leave();
      unsubscribe();
      peers.close();
    },
  };
}

function renewalTimes({ brakeTimes }: HealthProcess) {
  const { renewEveryMs = null, expiryMs = null } = brakeTimes ?? {};
  return {
    ...(renewEveryMs === null ? {} : { renewEveryMs }),
    ...(expiryMs === null ? {} : { expiryMs }),
  };
}

function readiness(replica: Replica): ReadyReport[string] {
  if (replica.mayOpen) return { ok: true, message: `${replica.nodes.sessions} agents connected` };
  if (replica.isClosing) return { ok: false, message: "the process is ending" };
  return { ok: false, message: "the lease is not held for certain" };
}

/** Do the last work as far as the record allows. The replica that adopts the nodes decides about the rest. */
async function within({ clock, log }: HealthProcess, ms: number, work: () => Promise<void>): Promise<void> {
  const done = new AbortController();
  const late = clock.sleep(ms, done.signal).then(
    () => log.warn({ after_ms: ms }, "health closed before everything was written"),
    () => {},
  );
  const working = work().catch((err: unknown) => {
    log.warn({ err }, "health closed without writing everything");
  });
  await Promise.race([late, working]);
  done.abort();
}
