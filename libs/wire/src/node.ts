import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
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
