import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetClusterHealthResponseSchema,
  type HealthQueryService,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { HealthServices } from "../health-services.ts";

/** Return sums over the fleet. */
export function getClusterHealth({
  totals,
}: HealthServices): MethodImpl<typeof HealthQueryService.method.getClusterHealth> {
  return async () => {
    const { totals: sums, missingReplicaIds } = await totals.cluster();
    const { $typeName, cpuPercentCores, ...same } = sums;
    return create(GetClusterHealthResponseSchema, {
      ...same,
      cpuPercent: sums.cores === 0n ? 0 : cpuPercentCores / Number(sums.cores),
      missingReplicaIds: [...missingReplicaIds],
    });
  };
}
