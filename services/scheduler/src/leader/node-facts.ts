import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import { effectiveLabels, type Label, type NodeCapacity, type NodeRecord, type WorkNode } from "@rollcall/domain";
import { recordToNodeInfo } from "@rollcall/wire";

/** What placement has to know of a node. */
export function toWorkNode(node: NodeRecord): WorkNode {
  const info = recordToNodeInfo(node.info ?? {});
  return {
    id: node.id,
    type: node.type,
    membership: node.membership.state,
    connection: node.connection.state,
    health: node.health.state,
    holds: node.holds.map(({ kind }) => kind),
    reactionAllowed: node.loss.reaction === "ALLOWED",
    labels: toMap(node.labels),
    grantedLabels: toMap(node.labels.filter(({ tier }) => tier !== "agent")),
    os: info.os?.family ?? "",
    architecture: info.os?.architecture ?? "",
    agentVersion: info.agentVersion,
    capacity: toCapacity(info),
    gpus: info.gpus.map(({ index, uuid, name }) => ({ index, uuid, model: name.toLowerCase() })),
  };
}

function toMap(labels: readonly Label[]): ReadonlyMap<string, string> {
  return new Map(effectiveLabels(labels).map(({ key, value }) => [key, value]));
}

function toCapacity({ work }: NodeInfo): NodeCapacity | null {
  if (work === undefined || work.executors.length === 0) return null;
  return {
    executors: work.executors,
    millicores: work.millicores,
    memoryBytes: Number(work.memoryBytes),
    diskBytes: Number(work.diskBytes),
    portMin: work.portMin,
    portMax: work.portMax,
    limits: work.limits,
    users: work.users,
    directories: work.directories,
  };
}
