import { HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { HelloAdmission } from "@rollcall/domain";
import { createRequestValidator, type RequestValidator, StrangerLog } from "@rollcall/rpc";
import { BrakeCounter } from "./brake/brake-counter.ts";
import { policyOf } from "./config.ts";
import type { Deps, HealthDeps } from "./deps.ts";
import { Peers } from "./internal/peers.ts";
import { createHealthMetrics, type HealthMetrics } from "./metrics.ts";
import { createMoves, type Moves } from "./moves/create-moves.ts";
import { PolicyFollower } from "./policy/policy-follower.ts";
import { ClusterTotals } from "./query/cluster-totals.ts";
import { createRecordWork, type RecordWork } from "./record-work.ts";
import { Replica } from "./replica/replica.ts";
import { HelloDesk } from "./stream/hello-desk.ts";
import { DEFAULT_STREAM_LIMITS, type StreamHost } from "./stream/stream-host.ts";
import { UnaryDesk } from "./unary/unary-desk.ts";
import { HealthWatches } from "./watch/health-watches.ts";

/** What health is made of, put together. */
export interface Parts {
  readonly replica: Replica;
  readonly desk: HelloDesk;
  readonly host: StreamHost;
  readonly work: RecordWork;
  readonly policies: PolicyFollower;
  readonly moves: Moves;
  readonly brake: BrakeCounter;
  /** What the methods share. */
  readonly methods: Deps;
}

/** Put the parts together. They know each other by callbacks, none of which is called before all are there. */
export function createParts(deps: HealthDeps): Parts {
  const { instance, clock, config } = deps;
  const random = deps.random ?? Math.random;
  const validator = createRequestValidator([HelloSchema, NodeInfoSchema]);
  const metrics = createHealthMetrics(deps.metrics, () => ({
    sessions: replica.nodes.sessions,
    nodes: replica.nodes.size,
    beats: replica.beats,
    hellosQueued: desk.queued,
    transitionsQueued: work.transitions.queued,
    stretch: replica.policies.pacer.factor,
  }));
  const replica = new Replica({
    instance,
    clock,
    policy: policyOf(config),
    heartbeatsPerSecond: config["Health.HeartbeatsPerSecond"],
    tickMs: config["Orchestrator.NodeManager.DetectorTick"],
    doubtMs: policyOf(config).unhealthyAfterMs / 2,
    random,
    metrics,
    onChanged: (node) => {
      replica.watched.touched(node);
      work.write(node);
    },
    onLabelsChanged: (node) => work.pushSettings(node),
    onTruthChanged: (node) => work.keepTruth(node),
  });
  const peers = new Peers({ ...deps, store: deps.store.reserved });
  const isOpening = (nodeId: string) => desk.isOpening(nodeId);
  const policies = new PolicyFollower({
    store: deps.store.reserved,
    instance,
    configured: policyOf(config),
    policies: replica.policies,
    onChanged: (nodeId) => work.settle(nodeId),
  });
  const brake = new BrakeCounter({ replica, label: config["Orchestrator.Brake.GroupLabel"] });
  const shared = { replica, validator, metrics, random, policies, brake };
  const work = createRecordWork({ ...shared, deps, isOpening, peers });
  const moves = createMoves(deps, { replica, peers, random, metrics });
  const desk = createDesk(deps, { ...shared, work, moves });
  const host = createHost(deps, replica, desk, work);
  return {
    replica,
    desk,
    host,
    work,
    policies,
    brake,
    moves,
    methods: createMethodDeps(deps, replica, peers, host),
  };
}

function createMethodDeps(
  { store, clock, log, random = Math.random }: HealthDeps,
  replica: Replica,
  peers: Peers,
  { onBeat, onHello }: StreamHost,
): Deps {
  const shared = { store, replica, clock, log, peers };
  return {
    ...shared,
    random,
    totals: new ClusterTotals(shared),
    unary: new UnaryDesk({ store, replica, log, random, onBeat, onHello }),
    watches: new HealthWatches(shared),
  };
}

function createDesk(
  { store, log, clock, config, failures, gatherMs }: HealthDeps,
  parts: {
    readonly replica: Replica;
    readonly validator: RequestValidator;
    readonly metrics: HealthMetrics;
    readonly random: () => number;
    readonly work: RecordWork;
    readonly policies: PolicyFollower;
    readonly moves: Moves;
  },
): HelloDesk {
  const { replica, validator, metrics, random, work, policies, moves } = parts;
  return new HelloDesk({
    store: store.reserved,
    replica,
    policiesKnown: () => policies.ready(),
    validator,
    metrics,
    log,
    clock,
    random,
    maxQueued: config["Health.HelloQueue"],
    gatherMs,
    failures,
    admission: new HelloAdmission(config["Health.HellosPerSecond"], clock.nowMs()),
    reconnects: moves.reconnects,
    onUncertain: () => work.doubt(),
  });
}

function createHost(
  { store, clock, log, limits, onBeat, onWelcomed, clientAddress, strangers }: HealthDeps,
  replica: Replica,
  desk: HelloDesk,
  work: RecordWork,
): StreamHost {
  return {
    replica,
    clock,
    log,
    strangers: strangers ?? new StrangerLog({ log }),
    clientAddress,
    limits: { ...DEFAULT_STREAM_LIMITS, ...limits },
    onBeat: onBeat ?? null,
    onWelcomed: onWelcomed ?? null,
    clusterId: () => store.clusterId(),
    onHello: desk.submit.bind(desk),
    onNodeInfo: work.infos.submit.bind(work.infos),
  };
}
