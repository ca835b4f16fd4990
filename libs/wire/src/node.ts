import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AllocatedResourcesSchema, type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { mayTakeWork, type NodeRecord } from "@rollcall/domain";
import { nodeTypeToProto } from "./enums.ts";
import { recordToNodeInfo } from "./node-info.ts";
import { connectionToProto, healthToProto, labelsToProto, membershipToProto, schedulingToProto } from "./states.ts";

/** What the record holds of a node, as far as the public message shows it. */
export type NodeFacts = Pick<
  NodeRecord,
  | "id"
  | "type"
  | "membership"
  | "connection"
  | "health"
  | "scheduling"
  | "info"
  | "labels"
  | "keyFingerprint"
  | "joining"
  | "keySinceMs"
  | "nextKeyFingerprint"
  | "keyRotationRequiredSinceMs"
  | "etag"
  | "createdAtMs"
  | "updatedAtMs"
>;

/** What executions have been given of a node. */
export interface AllocatedFacts {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpuUuids: readonly string[];
  readonly executions: number;
}

const NOTHING: AllocatedFacts = { millicores: 0, memoryBytes: 0, diskBytes: 0, gpuUuids: [], executions: 0 };

/** The public message of a node with what executions have been given of it; undefined for one that never had any. */
export function nodeWithWork(node: NodeFacts, allocated: AllocatedFacts = NOTHING): Node {
  const message = nodeToProto(node);
  if (message.info?.work === undefined && allocated.executions === 0) return message;
  const { millicores, memoryBytes, diskBytes, gpuUuids, executions } = allocated;
  message.allocated = create(AllocatedResourcesSchema, {
    ...{ millicores, memoryBytes: BigInt(memoryBytes), diskBytes: BigInt(diskBytes), executions },
    gpuUuids: [...gpuUuids],
  });
  return message;
}

/** The public message of a node. */
export function nodeToProto(node: NodeFacts): Node {
  return create(NodeSchema, {
    id: node.id,
    type: nodeTypeToProto(node.type),
    membership: membershipToProto(node.membership),
    connection: connectionToProto(node.connection),
    health: healthToProto(node.health),
    scheduling: schedulingToProto(node.scheduling),
    mayTakeWork: mayTakeWork(node),
    ...(node.info === null ? {} : { info: recordToNodeInfo(node.info) }),
    labels: labelsToProto(node.labels),
    keyFingerprint: node.keyFingerprint ?? "",
    joinTokenId: node.joining.tokenId ?? "",
    ephemeral: node.joining.ephemeral,
    joinedWithoutToken: node.joining.withoutToken,
    ...(node.keySinceMs === null ? {} : { keySince: timestampFromMs(node.keySinceMs) }),
    nextKeyFingerprint: node.nextKeyFingerprint ?? "",
    ...(node.keyRotationRequiredSinceMs === null
      ? {}
      : { keyRotationRequiredSince: timestampFromMs(node.keyRotationRequiredSinceMs) }),
    etag: node.etag,
    createTime: timestampFromMs(node.createdAtMs),
    updateTime: timestampFromMs(node.updatedAtMs),
  });
}
