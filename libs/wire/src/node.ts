import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  type Connection,
  type Health,
  type Json,
  type Label,
  type Membership,
  mayTakeWork,
  type NodeType,
  type Scheduling,
} from "@rollcall/domain";
import { nodeTypeToProto } from "./enums.ts";
import { recordToNodeInfo } from "./node-info.ts";
import { connectionToProto, healthToProto, labelsToProto, membershipToProto, schedulingToProto } from "./states.ts";

/** What the record knows of a node, as far as the public message shows it. NodeRecord is one. */
export interface NodeFacts {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Connection;
  /** The effective one, an operator's mark included. */
  readonly health: Health;
  readonly scheduling: Scheduling;
  /** As nodeInfoToRecord made it; null when the node said nothing of itself. */
  readonly info: Json;
  /** Labels of every tier. */
  readonly labels: readonly Label[];
  readonly keyFingerprint: string | null;
  /** How it joined. */
  readonly joining: {
    /** The join token's id; null without one. */
    readonly tokenId: string | null;
    readonly ephemeral: boolean;
    readonly withoutToken: boolean;
  };
  readonly keySinceMs: number | null;
  readonly nextKeyFingerprint: string | null;
  readonly keyRotationRequiredSinceMs: number | null;
  readonly etag: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
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
