import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { GetClusterSummaryResponseSchema, type RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { clusterSummary, type StateCount } from "@rollcall/store";
import { healthStateToProto, membershipStateToProto, schedulingStateToProto } from "@rollcall/wire";
import type { RegistryServices } from "../registry-services.ts";

/** Count the fleet. */
export function getClusterSummary({
  store,
}: RegistryServices): MethodImpl<typeof RegistryService.method.getClusterSummary> {
  return async () => {
    const { states, ...summary } = await clusterSummary(store.db);
    return create(GetClusterSummaryResponseSchema, {
      clusterId: store.clusterId(),
      ...summary,
      states: states.map(stateCountToProto),
    });
  };
}

function stateCountToProto({ membership, health, scheduling, count }: StateCount) {
  return {
    membership: membershipStateToProto(membership),
    health: healthStateToProto(health),
    scheduling: schedulingStateToProto(scheduling),
    count,
  };
}
