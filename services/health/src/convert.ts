import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type NodeHealth,
  NodeHealthSchema,
  type UsageSample,
  UsageSampleSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Health } from "@rollcall/domain";
import type { Clock } from "@rollcall/process";
import type { Node } from "@rollcall/store";
import { healthToProto } from "@rollcall/wire";
import type { LiveNode } from "./replica/live-node.ts";
import type { Sample } from "./samples/sample-ring.ts";

/** The data of a node's health report that is not part of the node's state in memory. */
export interface NodeHealthOptions {
  /** The effective health, including any mark. */
  readonly health: Health;
  readonly replicaId: string;
  readonly withSamples: boolean;
  readonly clock: Clock;
}

/** Convert the health of a node that this replica holds. */
export function heldToProto(node: LiveNode, options: NodeHealthOptions): NodeHealth {
  const { health, replicaId, withSamples, clock } = options;
  const { timing, lastFrameAtMs, samples, clockSkewMs } = node;
  const nowMs = clock.nowMs();
  const toProto = (sample: Sample) => sampleToProto(sample, nowMs);
  const latest = samples?.latest() ?? null;
  return create(NodeHealthSchema, {
    nodeId: node.id,
    health: healthToProto(health),
    ...(lastFrameAtMs === null ? {} : seen(nowMs - lastFrameAtMs, clock)),
    ...intervalsToProto(node),
    unhealthyAfter: durationFromMs(timing.thresholds.unhealthyAfterMs),
    unknownAfter: durationFromMs(timing.thresholds.unknownAfterMs),
    replicaId,
    sessionEpoch: BigInt(node.epoch),
    ...(latest === null ? {} : { latest: toProto(latest) }),
    ...(clockSkewMs === null ? {} : { clockSkew: durationFromMs(clockSkewMs) }),
    samples: withSamples ? (samples?.list() ?? []).map(toProto) : [],
  });
}

/**
 * Convert the health of a node from its row in the store. Used when the node has no owner or its owner does not
 * respond.
 *
 * @param telemetryUnavailable human-readable reason why the owner does not respond; empty without an owner.
 */
export function recordToProto(node: Pick<Node, "id" | "health" | "session">, telemetryUnavailable = ""): NodeHealth {
  return create(NodeHealthSchema, {
    nodeId: node.id,
    health: healthToProto(node.health),
    replicaId: node.session.replicaId ?? "",
    sessionEpoch: BigInt(node.session.epoch),
    telemetryUnavailable,
  });
}

/** The current intervals, and those that the agent requested. */
function intervalsToProto({ intervals, terms: { wishes } }: LiveNode) {
  if (intervals === null) return {};
  const { heartbeatMs, infoMs } = wishes;
  return {
    heartbeatInterval: durationFromMs(intervals.heartbeatMs),
    infoInterval: durationFromMs(intervals.infoMs),
    ...(heartbeatMs === null ? {} : { wishedHeartbeatInterval: durationFromMs(heartbeatMs) }),
    ...(infoMs === null ? {} : { wishedInfoInterval: durationFromMs(infoMs) }),
  };
}

function seen(silentMs: number, clock: Clock) {
  const wholeMs = Math.max(0, Math.round(silentMs));
  return {
    lastSeenTime: timestampFromMs(clock.wallMs() - wholeMs),
    silentFor: durationFromMs(wholeMs),
  };
}

function sampleToProto({ atMs, usage }: Sample, nowMs: number): UsageSample {
  const ageMs = Math.max(0, Math.round(nowMs - atMs));
  return create(UsageSampleSchema, { age: durationFromMs(ageMs), usage });
}
