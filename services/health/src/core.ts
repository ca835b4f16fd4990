import { HelloAdmission } from "@rollcall/domain";
import type { Clock, Logger, Task } from "@rollcall/process";
import type { FailedAttempts, RequestValidator } from "@rollcall/rpc";
import type { EventRow } from "@rollcall/store";
import { adoptOrphansTask, OrphanAdopter } from "./adoption/adopt-orphans.ts";
import { AdoptedProber, probeAdoptedTask } from "./adoption/probe-adopted.ts";
import { type HealthConfig, policyOf } from "./config.ts";
import type { PeerList } from "./internal/peers.ts";
import type { HealthMetrics } from "./metrics.ts";
import { drain } from "./moves/drain.ts";
import { CutOffLeaver, leaveWhenCutOffTask } from "./moves/leave-when-cut-off.ts";
import { Rebalancer, rebalanceTask } from "./moves/rebalancer.ts";
import { Reconnects } from "./moves/reconnects.ts";
import { SessionMover } from "./moves/session-mover.ts";
import { failureDetectionTask } from "./replica/failure-detection-task.ts";
import { FailureDetector, type FailureDetectorOptions } from "./replica/failure-detector.ts";
import { type HealthStore, STORE_RETRY } from "./replica/health-store.ts";
import type { LiveNode } from "./replica/live-node.ts";
import { Replica } from "./replica/replica.ts";
import { callToWrite, TransitionWriter, writeTransitionsTask } from "./store/transition-writer.ts";
import type { ProofCheck } from "./stream/hello-arrival.ts";
import { HelloQueue } from "./stream/hello-queue.ts";

/**
 * The dependencies of the core. The core uses sockets, the database and timers only through them, so that a
 * simulation can replace them.
 */
export interface CoreOptions {
  /** The instance of the process's lease. */
  readonly instance: string;
  readonly record: HealthStore;
  readonly peers: PeerList;
  readonly config: HealthConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: HealthMetrics;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** See HealthProcess. */
  readonly gatherMs: number;
  readonly validator: Pick<RequestValidator, "check">;
  readonly failures?: FailedAttempts | undefined;
  /** Resolves once the policy of each node is known. */
  readonly policiesKnown: () => Promise<void>;
  /** The node's brake group; "" for none. */
  readonly groupOf: (node: LiveNode) => string;
  /** See ReplicaOptions. */
  readonly onLabelsChanged: (node: LiveNode) => void;
  /** See ReplicaOptions. */
  readonly onConditionsChanged: (node: LiveNode) => void;
  /** See HelloQueueOptions. */
  readonly isSigned?: ProofCheck;
  /** See HelloQueueOptions. */
  readonly nextLoopTick?: () => Promise<void>;
  /** Creates the failure detector; a simulation passes its own. Default: `new FailureDetector()`. */
  readonly createFailureDetector?: (options: FailureDetectorOptions) => FailureDetector;
}

/** Admits agents, decides the health of their nodes, writes observations, and adopts nodes. */
export interface Core {
  readonly replica: Replica;
  readonly queue: HelloQueue;
  readonly transitions: TransitionWriter;
  readonly adopter: OrphanAdopter;
  readonly reconnects: Reconnects;
  readonly tasks: readonly Task[];
  /** Apply events from the log. */
  observe(events: readonly EventRow[]): void;
  leaseHeld(): void;
  leaseDoubted(sinceMs: number): void;
  /** Move the agents away before shutdown. `withdraw` keeps new agents from connecting to this replica. */
  drain(withdraw: () => Promise<void>): Promise<void>;
  /** End every session with a delay after which its agent reconnects. Call `transitions.flush()` next. */
  close(): void;
}

export function createCore(options: CoreOptions): Core {
  const { instance, record, peers, config, clock, log, metrics, random, gatherMs, policiesKnown } = options;
  const nextLoopTick = options.nextLoopTick === undefined ? {} : { nextLoopTick: options.nextLoopTick };
  const tickMs = config["Orchestrator.NodeManager.DetectorTick"];
  const policy = policyOf(config);
  const detectorOptions = { clock, tickMs, metrics, doubtMs: policy.unhealthyAfterMs / 2 };
  const replica = new Replica({
    ...detectorOptions,
    detector: options.createFailureDetector?.(detectorOptions) ?? new FailureDetector(detectorOptions),
    instance,
    policy,
    heartbeatsPerSecond: config["Health.HeartbeatsPerSecond"],
    random,
    onChanged: (node) => {
      replica.watched.touched(node);
      transitions.add(node);
      callToWrite(writing, node);
    },
    onMovedAway: (node) => {
      // Compare an adopted node with the store. The event may be older than the adoption: the other replica may have
      // taken the node and then lost its lease.
      if (node.publicKey === null) adopter.doubt([node.id]);
    },
    onLabelsChanged: options.onLabelsChanged,
    onConditionsChanged: options.onConditionsChanged,
  });
  const loops = { clock, retry: STORE_RETRY };
  const isOpening = (nodeId: string) => queue.isOpening(nodeId);
  const transitions = new TransitionWriter({ record, replica, metrics, isOpening, groupOf: options.groupOf });
  const writing = writeTransitionsTask(transitions, { ...loops, gatherMs });
  const prober = new AdoptedProber({ log, replica, peers });
  const probing = probeAdoptedTask(prober, loops);
  const adopter = new OrphanAdopter({
    record,
    replica,
    isOpening,
    log,
    policiesKnown,
    knowPeers: () => peers.refresh(0),
    onAdopted: (nodes) => {
      prober.add(nodes);
      probing.call();
    },
  });
  const adoption = adoptOrphansTask(adopter, loops);
  const hellosPerSecond = config["Health.HellosPerSecond"];
  const reconnects = new Reconnects({ instance, peers, hellosPerSecond, unhealthyAfterMs: policy.unhealthyAfterMs });
  const moving = {
    clock,
    log,
    random,
    replica,
    peers,
    reconnects,
    mover: new SessionMover({ nodes: replica.nodes, clock }),
  };
  const rebalancer = new Rebalancer({ ...moving, onAsked: (count) => metrics.movesAsked(count) });
  const leaving = leaveWhenCutOffTask(new CutOffLeaver(moving), loops);
  const queue = new HelloQueue({
    ...{ record, replica, metrics, log, clock, random, gatherMs, policiesKnown, reconnects },
    validator: options.validator,
    maxQueued: config["Health.HelloQueue"],
    failures: options.failures,
    admission: new HelloAdmission(hellosPerSecond, clock.nowMs()),
    onUncertain: (nodeIds) => adopter.doubt(nodeIds),
    ...(options.isSigned === undefined ? {} : { isSigned: options.isSigned }),
    ...nextLoopTick,
  });
  const evaluating = failureDetectionTask({ replica, clock, tickMs, ...nextLoopTick });
  return {
    replica,
    queue,
    transitions,
    adopter,
    reconnects,
    tasks: [evaluating, writing, adoption, probing, rebalanceTask(rebalancer, loops), leaving],
    observe: (events) => {
      queue.observe(events);
      adopter.observe(events);
      replica.apply(events);
    },
    leaseHeld: () => {
      // Compare all nodes with the store. While the lease was in doubt, other replicas may have adopted this
      // replica's nodes, and no event reports the adoption of disconnected nodes.
      if (replica.isInDoubt) adopter.doubt(null);
      replica.leaseHeld();
      adoption.call();
    },
    leaseDoubted: (sinceMs) => {
      replica.leaseDoubted(sinceMs);
      leaving.call();
    },
    drain: (withdraw) => drain({ ...moving, withdraw }),
    close: () => replica.close(reconnects.windowMs(replica.nodes.sessions)),
  };
}
