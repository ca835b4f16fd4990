import { HelloAdmission } from "@rollcall/domain";
import type { Clock, Logger, Task } from "@rollcall/process";
import type { FailedAttempts, RequestValidator } from "@rollcall/rpc";
import type { StoredEvent } from "@rollcall/store";
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
import { type HealthRecord, RECORD_RETRY } from "./record/health-record.ts";
import { callToWrite, TransitionWriter, writeTransitionsTask } from "./record/transition-writer.ts";
import type { HeldNode } from "./replica/held-node.ts";
import { judgeSilenceTask } from "./replica/judge-silence.ts";
import { Replica } from "./replica/replica.ts";
import { Silence, type SilenceOptions } from "./replica/silence.ts";
import type { ProofCheck } from "./stream/hello-arrival.ts";
import { HelloDesk } from "./stream/hello-desk.ts";

/** What the core is made of. No socket, database or timer: a simulation passes its own. */
export interface CoreOptions {
  /** The instance of the process's lease. */
  readonly instance: string;
  readonly record: HealthRecord;
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
  /** The node's group of the brake; "" for none. */
  readonly groupOf: (node: HeldNode) => string;
  /** See ReplicaOptions. */
  readonly onLabelsChanged: (node: HeldNode) => void;
  /** See ReplicaOptions. */
  readonly onConditionsChanged: (node: HeldNode) => void;
  /** See HelloDeskOptions. */
  readonly isSigned?: ProofCheck;
  /** See HelloDeskOptions. */
  readonly nextTurn?: () => Promise<void>;
  /** Creates the timing of the nodes. */
  readonly createSilence?: (options: SilenceOptions) => Silence;
}

/** Admits agents, judges their nodes, writes what it observes, and adopts nodes. */
export interface Core {
  readonly replica: Replica;
  readonly desk: HelloDesk;
  readonly transitions: TransitionWriter;
  readonly adopter: OrphanAdopter;
  readonly reconnects: Reconnects;
  readonly tasks: readonly Task[];
  /** Follow the log. */
  observe(events: readonly StoredEvent[]): void;
  leaseHeld(): void;
  leaseDoubted(sinceMs: number): void;
  /** Move the agents away before the end. `withdraw` stops new agents from coming here. */
  drain(withdraw: () => Promise<void>): Promise<void>;
  /** End every session, each with a time to reconnect. Call `transitions.flush()` next. */
  close(): void;
}

/** Create the core. */
export function createCore(options: CoreOptions): Core {
  const { instance, record, peers, config, clock, log, metrics, random, gatherMs, policiesKnown } = options;
  const nextTurn = options.nextTurn === undefined ? {} : { nextTurn: options.nextTurn };
  const tickMs = config["Orchestrator.NodeManager.DetectorTick"];
  const policy = policyOf(config);
  const silenceOptions = { clock, tickMs, metrics, doubtMs: policy.unhealthyAfterMs / 2 };
  const replica = new Replica({
    ...silenceOptions,
    silence: options.createSilence?.(silenceOptions) ?? new Silence(silenceOptions),
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
      // The event may be older than the adoption: a replica without its lease took the node just before.
      if (node.publicKey === null) adopter.doubt([node.id]);
    },
    onLabelsChanged: options.onLabelsChanged,
    onConditionsChanged: options.onConditionsChanged,
  });
  const loops = { clock, retry: RECORD_RETRY };
  const isOpening = (nodeId: string) => desk.isOpening(nodeId);
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
  const desk = new HelloDesk({
    ...{ record, replica, metrics, log, clock, random, gatherMs, policiesKnown, reconnects },
    validator: options.validator,
    maxQueued: config["Health.HelloQueue"],
    failures: options.failures,
    admission: new HelloAdmission(hellosPerSecond, clock.nowMs()),
    onUncertain: (nodeIds) => adopter.doubt(nodeIds),
    ...(options.isSigned === undefined ? {} : { isSigned: options.isSigned }),
    ...nextTurn,
  });
  const judging = judgeSilenceTask({ replica, clock, tickMs, ...nextTurn });
  return {
    replica,
    desk,
    transitions,
    adopter,
    reconnects,
    tasks: [judging, writing, adoption, probing, rebalanceTask(rebalancer, loops), leaving],
    observe: (events) => {
      desk.observe(events);
      adopter.observe(events);
      replica.apply(events);
    },
    leaseHeld: () => {
      // While it was in doubt others may have adopted its nodes, of which the disconnected ones have no event.
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
