import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetClusterSummaryResponseSchema,
  type RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { healthStateToProto, membershipStateToProto, schedulingStateToProto } from "@rollcall/wire";
import { type ClusterGroup, readClusterGroups, sumFigures } from "../cluster-figures.ts";
import type { Deps } from "../deps.ts";

/** Count the fleet. */
export function getClusterSummary({
  store,
}: Deps): MethodImpl<typeof RegistryService.method.getClusterSummary> {
  return async () => {
    const groups = await readClusterGroups(store.db);
    const compute = groups.filter(({ type }) => type === "COMPUTE");
    const available = compute.filter(takesWork);
    return create(GetClusterSummaryResponseSchema, {
      clusterId: store.clusterId(),
      orchestrators: countNodes(groups.filter(({ type }) => type === "ORCHESTRATOR")),
      compute: countNodes(compute),
      states: countStates(compute),
      mayTakeWork: sumFigures(available).nodes,
      total: toCapacity(compute.filter(({ membership }) => membership === "APPROVED")),
      available: toCapacity(available),
    });
  };
}

/** The rule of mayTakeWork(), for compute nodes that were counted together. */
function takesWork({ membership, health, scheduling }: ClusterGroup): boolean {
  return membership === "APPROVED" && health === "HEALTHY" && scheduling === "ELIGIBLE";
}

function countNodes(groups: readonly ClusterGroup[]) {
  const connected = groups.filter(({ connection }) => connection === "CONNECTED");
  return { total: sumFigures(groups).nodes, connected: sumFigures(connected).nodes };
}

/** Groups that differ in their connection alone are one here. */
function countStates(groups: readonly ClusterGroup[]) {
  const byStates = new Map<string, ClusterGroup>();
  for (const group of groups) {
    const name = `${group.membership} ${group.health} ${group.scheduling}`;
    const nodes = group.nodes + (byStates.get(name)?.nodes ?? 0);
    byStates.set(name, { ...group, nodes });
  }
  const inOrder = [...byStates.entries()].sort(([left], [right]) => (left < right ? -1 : 1));
  return inOrder.map(([, { membership, health, scheduling, nodes }]) => ({
    membership: membershipStateToProto(membership),
    health: healthStateToProto(health),
    scheduling: schedulingStateToProto(scheduling),
    count: nodes,
  }));
}

function toCapacity(groups: readonly ClusterGroup[]) {
  const { cores, memoryBytes, diskBytes, gpus } = sumFigures(groups);
  return { cores, memoryBytes, diskBytes, gpus };
}
