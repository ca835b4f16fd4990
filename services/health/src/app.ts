import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { ExecutionReportSchema, HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type EventInterest, replicaInterest, unitedInterest } from "@rollcall/domain";
import type { ReplicaAuthenticator } from "@rollcall/identity";
import { Loop, type Task } from "@rollcall/process";
import {
  AnonymousLog,
  createRequestValidator,
  type GrpcRoute,
  type PolicyTable,
  type ReadyReport,
} from "@rollcall/rpc";
import { type LeaseReport, withdraw } from "@rollcall/store";
import { BrakeCounter } from "./brake/brake-counter.ts";
import { BrakeDecider, decideBrakeTask } from "./brake/brake-decider.ts";
import { createBrakeStore } from "./brake/brake-store.ts";
import { ConditionKeeper, keepConditionsTask } from "./conditions/condition-keeper.ts";
import { policyOf } from "./config.ts";
import { createCore } from "./core.ts";
import type { HealthProcess } from "./health-process.ts";
import { Advertiser, advertiseTask, type Endpoints } from "./internal/advertise.ts";
import { connectPeers } from "./internal/connect-peers.ts";
import { createInternalRoutes, INTERNAL_POLICIES, INTERNAL_SERVICES, replicasOnly } from "./internal/routes.ts";
import { createHealthMetrics } from "./metrics.ts";
import { followPoliciesTask, POLICY_INTEREST, PolicyFollower } from "./policy/policy-follower.ts";
import { pushSettingsTask, SettingsPusher } from "./policy/push-settings.ts";
import { ClusterTotals } from "./query/cluster-totals.ts";
import { STORE_RETRY } from "./replica/health-store.ts";
import type { LiveNode } from "./replica/live-node.ts";
import type { Replica } from "./replica/replica.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import type { InternalServices } from "./rpc/internal-methods.ts";
import { clearDuplicatesTask } from "./store/clear-duplicates.ts";
import { InfoWriter, writeNodeInfoTask } from "./store/info-writer.ts";
import { createPostgresRecord } from "./store/postgres-store.ts";
import { createAgentRoutes } from "./stream/agent-routes.ts";
import { DEFAULT_STREAM_LIMITS, type StreamHost } from "./stream/agent-stream.ts";
import { LocalSessions } from "./unary/local-sessions.ts";
import { HealthWatches } from "./watch/health-watches.ts";
import { LogProxy } from "./work/log-proxy.ts";
import { createPostgresWork } from "./work/postgres-work.ts";
import { WorkDispatcher } from "./work/work-dispatcher.ts";

/**
 * The event after which nodes can forget the executions of a deleted job. It does not change which executions nodes
 * should run.
 */
const JOB_DELETED: EventInterest = { types: new Set(["job.deleted"]), displaced: new Set() };

/** The health service, ready to be served on its two ports. */
export interface HealthApp {
  /** Register the methods for readers. */
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** The methods that other replicas call, on a separate port; see Endpoints.internalAddress. */
  readonly internal: Pick<HealthApp, "routes" | "services" | "policies"> & {
    readonly authenticateReplica: ReplicaAuthenticator;
  };
  /** The methods that agents call, for createGrpcServer(). */
  readonly agentRoutes: readonly GrpcRoute[];
  /** Background work, for a supervisor to run. */
  readonly tasks: readonly Task[];
  /** The nodes that this process holds. Used by tests and for inspecting a running process. */
  readonly replica: Replica;
  /** Update a node's conditions immediately instead of within seconds. For tests. */
  keepConditions(node: LiveNode): void;
  /** Whether agents can be admitted. */
  ready(): ReadyReport;
  /**
   * The report to send with each renewal of the process's lease, see LeaseKeeperOptions. Each call counts the nodes
   * again.
   */
  leaseReport(): LeaseReport;
  /** Called by the process's lease keeper, see LeaseKeeperOptions. */
  onLeaseHeld(): void;
  /**
   * Called by the process's lease keeper when the lease may have expired. No node is declared unhealthy until the
   * lease is held again.
   */
  onLeaseDoubt(doubt: { readonly sinceMs: number }): void;
  /** Advertise the addresses of this replica. */
  advertise(endpoints: Endpoints): void;
  /**
   * Stop admitting agents, and move the current ones to other replicas. This replica serves them until they have
   * moved, for up to ten seconds. Resolves immediately when there are no other replicas. The first step of a graceful
   * shutdown.
   */
  drain(): Promise<void>;
  /**
   * End every stream with a delay after which its agent reconnects, and write pending changes, within 5 s. Must be
   * called before the agents' port is closed and the lease is released.
   */
  close(): Promise<void>;
}

const CLOSE_WITHIN_MS = 5_000;
/**
 * How long to wait for a notification before polling for changed work. A poll is one query, regardless of the number
 * of held nodes.
 */
const WORK_POLL_MS = 2_000;

/**
 * Create the health service. Its parts call each other through callbacks. No callback is called before all parts
 * exist.
 */
export function createApp(deps: HealthProcess): HealthApp {
  const { instance, clock, log, config, random = Math.random } = deps;
  const store = deps.store.reserved;
  const loops = { clock, retry: STORE_RETRY };
  const validator = createRequestValidator([HelloSchema, NodeInfoSchema, ExecutionReportSchema]);
  const metrics = createHealthMetrics(deps.metrics, () => ({
    sessions: replica.nodes.sessions,
    nodes: replica.nodes.size,
    beats: replica.beats,
    hellosQueued: core.queue.queued,
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
  const { replica, queue } = core;
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
  // Use the shared connections instead of the reserved ones, because writes of node information can wait behind
  // calls.
  const infos = new InfoWriter({ store: deps.store, replica, validator, onQueued: () => informing.call() });
  const informing = writeNodeInfoTask(infos, loops);
  const keeper = new ConditionKeeper({ store, replica, log });
  const keeping = keepConditionsTask(keeper, loops);
  const keepConditions = (node: LiveNode) => {
    keeper.add(node);
    keeping.call();
  };
  const advertiser = new Advertiser({ store, instance, log });
  const advertisement = advertiseTask(advertiser, loops);
  const brake = new BrakeCounter({ replica, label: config["Orchestrator.Brake.GroupLabel"] });
  const decider = new BrakeDecider({
    ...deps,
    record: createBrakeStore({ store, instance, log }),
    ...deps.brakeTimes,
  });
  const brakeLease = { store, log, instance, clock: deps.brakeTimes?.clock ?? clock, ...renewalTimes(deps) };
  const work = new WorkDispatcher({ record: createPostgresWork(store), replica, validator, loops });
  const unsubscribe = deps.signals.follow("WANTED", () => work.observe());
  const polling = new Loop({ name: "poll-work", everyMs: WORK_POLL_MS, clock, turn: async () => work.observe() });
  const host: StreamHost = {
    ...{ replica, clock, log, work },
    authorities: deps.authorities ?? null,
    anonymousClients: deps.anonymousClients ?? new AnonymousLog({ log }),
    limits: { ...DEFAULT_STREAM_LIMITS, ...deps.limits },
    onBeat: deps.onBeat ?? null,
    clusterId: () => store.clusterId(),
    logId: () => store.logId(),
    onHello: queue.submit.bind(queue),
    onNodeInfo: infos.submit.bind(infos),
  };
  const logs = new LogProxy({ clock });
  const shared = { store: deps.store, replica, clock, log, peers };
  const methods: InternalServices = {
    ...shared,
    ...{ random, logs },
    totals: new ClusterTotals(shared),
    unary: new LocalSessions({ store, host }),
    watches: new HealthWatches({ ...shared, feed: deps.feed }),
  };
  const following = deps.feed.follow({
    name: "health",
    interest: unitedInterest([replicaInterest(instance), POLICY_INTEREST, JOB_DELETED]),
    gatherMs: deps.gatherMs,
    deliver: (events) => {
      policies.observe(events);
      core.observe(events);
      if (events.some(({ type }) => type === "job.deleted")) work.jobsDeleted();
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
  if (replica.isClosing) return { ok: false, message: "the process is shutting down" };
  return { ok: false, message: "the lease may have expired" };
}

/**
 * Run work for up to `ms`, and log a warning if it does not finish. States that were not written are corrected by the
 * replica that adopts the nodes.
 */
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
