import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetHeldTotalsResponseSchema,
  HealthInternalService,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import type { HealthServices } from "../../health-services.ts";

const METHOD = HealthInternalService.method.getHeldTotals;

/** Return the sums over all nodes that this replica holds. */
export function getHeldTotals(services: HealthServices): MethodImpl<typeof METHOD> {
  return async () => create(GetHeldTotalsResponseSchema, { totals: await services.totals.own() });
}
