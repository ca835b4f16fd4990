import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  AllocatedResourcesSchema,
  type Node,
  type NodeAgent,
  NodeAgentSchema,
  type NodeInfo,
  NodeInfoSchema,
  NodeSchema,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import { type AgentSighting, mayTakeWork, type Node as StoredNode } from "@rollcall/domain";
import { nodeTypeToProto } from "./enums.ts";
import { rowToNodeInfo } from "./node-info.ts";
import { applyReadMask, maskJson, parseReadMask, type ReadMask } from "./read-mask.ts";
import { connectionToProto, healthToProto, labelsToProto, membershipToProto, schedulingToProto } from "./states.ts";

/** The stored data that appears in the public message of a node. */
export type NodeFacts = Pick<
  StoredNode,
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
  | "duplicate"
  | "etag"
  | "createdAtMs"
  | "updatedAtMs"
>;

/** The resources of a node that are allocated to executions. */
export interface AllocatedFacts {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpuUuids: readonly string[];
  readonly executions: number;
}

const NOTHING: AllocatedFacts = { millicores: 0, memoryBytes: 0, diskBytes: 0, gpuUuids: [], executions: 0 };

/**
 * The public message of a node, with the resources allocated to executions. These resources are omitted for a node that
 * takes no work and has no executions. With a mask, only the requested fields and the id are included.
 */
export function nodeWithWork(node: NodeFacts, allocated: AllocatedFacts = NOTHING, mask: ReadMask | null = null): Node {
  const message = nodeToProto(node, mask);
  if (mask !== null && !mask.wanted.has("allocated")) return message;
  const isWorker = mask === null ? message.info?.work !== undefined : takesWork(node);
  if (!isWorker && allocated.executions === 0) return message;
  const { millicores, memoryBytes, diskBytes, gpuUuids, executions } = allocated;
  message.allocated = create(AllocatedResourcesSchema, {
    ...{ millicores, memoryBytes: BigInt(memoryBytes), diskBytes: BigInt(diskBytes), executions },
    gpuUuids: [...gpuUuids],
  });
  const part = mask?.wanted.get("allocated") ?? null;
  if (part !== null) applyReadMask(message.allocated, part);
  return message;
}

const WORK: ReadMask = onlyWork();

function takesWork({ info }: NodeFacts): boolean {
  return info !== null && rowToNodeInfo(maskJson(info, WORK, NodeInfoSchema)).work !== undefined;
}

function onlyWork(): ReadMask {
  const parsed = parseReadMask(NodeInfoSchema, ["work"]);
  if (!parsed.ok) throw new Error(parsed.description);
  return parsed.mask;
}

/** The public message of a node. With a mask, only the requested fields and the id are included. */
export function nodeToProto(node: NodeFacts, mask: ReadMask | null = null): Node {
  const info = infoOf(node, mask);
  const message = create(NodeSchema, {
    id: node.id,
    type: nodeTypeToProto(node.type),
    membership: membershipToProto(node.membership),
    connection: connectionToProto(node.connection),
    health: healthToProto(node.health),
    scheduling: schedulingToProto(node.scheduling),
    mayTakeWork: mayTakeWork(node),
    ...(info === null ? {} : { info }),
    labels: labelsToProto(node.labels),
    keyFingerprint: node.keyFingerprint ?? "",
    joinTokenId: node.joining.tokenId ?? "",
    ephemeral: node.joining.ephemeral,
    joinedWithoutToken: node.joining.withoutToken,
    joinedFrom: node.joining.from ?? "",
    ...(node.keySinceMs === null ? {} : { keySince: timestampFromMs(node.keySinceMs) }),
    nextKeyFingerprint: node.nextKeyFingerprint ?? "",
    ...(node.keyRotationRequiredSinceMs === null
      ? {}
      : { keyRotationRequiredSince: timestampFromMs(node.keyRotationRequiredSinceMs) }),
    duplicateAgents: (node.duplicate ?? []).map(agentToProto),
    etag: node.etag,
    createTime: timestampFromMs(node.createdAtMs),
    updateTime: timestampFromMs(node.updatedAtMs),
  });
  if (mask === null) return message;
  applyReadMask(message, mask);
  message.id = node.id;
  return message;
}

function agentToProto({ instanceId, bootId, fingerprint, address, atMs }: AgentSighting): NodeAgent {
  return create(NodeAgentSchema, {
    ...{ instanceId, bootId, machineFingerprint: fingerprint, address },
    time: timestampFromMs(atMs),
  });
}

/** Decode only the requested parts of the node's own report, because the report is most of the message. */
function infoOf({ info }: NodeFacts, mask: ReadMask | null): NodeInfo | null {
  const wanted = mask === null ? null : mask.wanted.get("info");
  if (info === null || wanted === undefined) return null;
  return rowToNodeInfo(wanted === null ? info : maskJson(info, wanted, NodeInfoSchema));
}
