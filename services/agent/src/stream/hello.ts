import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { type Challenge, HealthService, type HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { proofText } from "@rollcall/domain";
import { type NodeKeyPair, signProof } from "@rollcall/identity";
import type { NodeKeys } from "../state/node-keys.ts";

/** The full name of the stream's method, which the signature of a Hello covers. */
export const HEARTBEAT_METHOD = `/${HealthService.typeName}/${HealthService.method.heartbeat.name}`;

/** The intervals that this machine's configuration requests, in milliseconds. */
export interface AgentWishes {
  readonly heartbeatMs: number | undefined;
  readonly infoMs: number | undefined;
}

/** The identity that an agent uses on every stream. */
export interface AgentIdentity {
  readonly nodeId: string;
  readonly keys: NodeKeys;
  readonly agentVersion: string;
  /** A random id of this process, which distinguishes two agents with the same identity. */
  readonly instanceId: string;
  readonly bootId: string;
  /** See `readMachineFingerprint`. */
  readonly machineFingerprint: string;
  /** The intervals that this machine's operator has configured. */
  readonly wishes: AgentWishes;
}

/** Create the first frame of a stream: the node's identity and its proof. */
export function makeHello(
  identity: AgentIdentity,
  keyPair: NodeKeyPair,
  challenge: Challenge,
  nodeInfoDigest: Uint8Array,
): MessageInitShape<typeof HelloSchema> {
  const text = proofText({
    method: HEARTBEAT_METHOD,
    clusterId: challenge.clusterId,
    nodeId: identity.nodeId,
    nonce: challenge.nonce,
  });
  const { heartbeatMs, infoMs } = identity.wishes;
  return {
    nodeId: identity.nodeId,
    signature: signProof(keyPair.privateKey, text),
    agentVersion: identity.agentVersion,
    instanceId: identity.instanceId,
    bootId: identity.bootId,
    machineFingerprint: identity.machineFingerprint,
    nodeInfoDigest,
    ...(heartbeatMs !== undefined && { wishedHeartbeatInterval: toDuration(heartbeatMs) }),
    ...(infoMs !== undefined && { wishedInfoInterval: toDuration(infoMs) }),
  };
}

/** A protobuf duration of whole milliseconds. */
export function toDuration(ms: number): Duration {
  return create(DurationSchema, {
    seconds: BigInt(Math.floor(ms / 1000)),
    nanos: Math.floor(ms % 1000) * 1_000_000,
  });
}

/** Milliseconds of a protobuf duration, rounded up. */
export function toMs({ seconds, nanos }: Duration): number {
  return Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000);
}
