import { createRequestValidator, type RequestValidator } from "@rollcall/runtime";
import { policyOf } from "./config.ts";
import type { HealthDeps } from "./deps.ts";
import { createHealthMetrics, type HealthMetrics } from "./metrics.ts";
import { createRecordWork, type RecordWork } from "./record-work.ts";
import { Replica } from "./replica/replica.ts";
import { HelloDesk } from "./stream/hello-desk.ts";
import { DEFAULT_STREAM_LIMITS, type StreamHost } from "./stream/stream-host.ts";

/** What health is made of, put together. */
export interface Parts {
  readonly replica: Replica;
  readonly desk: HelloDesk;
  readonly host: StreamHost;
  readonly work: RecordWork;
}

/** Put the parts together. They know each other by callbacks, none of which is called before all are there. */
export function createParts(deps: HealthDeps): Parts {
  const { instance, clock, config } = deps;
  const random = deps.random ?? Math.random;
  const validator = createRequestValidator();
  const metrics = createHealthMetrics(deps.metrics, () => ({
    sessions: replica.nodes.sessions,
    nodes: replica.nodes.size,
    beats: replica.beats,
    hellosQueued: desk.queued,
    transitionsQueued: work.transitions.queued,
  }));
  const replica = new Replica({
    instance,
    clock,
    policy: policyOf(config),
    tickMs: config["Orchestrator.NodeManager.DetectorTick"],
    random,
    metrics,
    onChanged: (node) => work.write(node),
    onLabelsChanged: (node) => work.pushLabels(node),
  });
  const isOpening = (nodeId: string) => desk.isOpening(nodeId);
  const work = createRecordWork({ deps, replica, validator, metrics, random, isOpening });
  const desk = createDesk(deps, { replica, validator, metrics, random, work });
  return { replica, desk, host: createHost(deps, replica, desk, work), work };
}

function createDesk(
  { store, log, clock, config }: HealthDeps,
  parts: {
    readonly replica: Replica;
    readonly validator: RequestValidator;
    readonly metrics: HealthMetrics;
    readonly random: () => number;
    readonly work: RecordWork;
  },
): HelloDesk {
  const { replica, validator, metrics, random, work } = parts;
  return new HelloDesk({
    store,
    replica,
    policy: policyOf(config),
    validator,
    metrics,
    log,
    clock,
    random,
    maxQueued: config["Health.HelloQueue"],
    onUncertain: () => work.doubt(),
  });
}

function createHost(
  { store, clock, log, limits, onBeat }: HealthDeps,
  replica: Replica,
  desk: HelloDesk,
  work: RecordWork,
): StreamHost {
  return {
    replica,
    clock,
    log,
    limits: { ...DEFAULT_STREAM_LIMITS, ...limits },
    onBeat: onBeat ?? null,
    clusterId: () => store.clusterId(),
    onHello: desk.submit.bind(desk),
    onNodeInfo: work.infos.submit.bind(work.infos),
  };
}
