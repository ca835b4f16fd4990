import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetHeldTotalsResponseSchema,
  HealthInternalService,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import type { Deps } from "../../deps.ts";
import { checkReplica } from "../replica-only.ts";

const METHOD = HealthInternalService.method.getHeldTotals;

/** Answer the sums over all nodes that this replica holds. */
export function getHeldTotals(deps: Deps): MethodImpl<typeof METHOD> {
  return async (_request, context) => {
    checkReplica(deps, METHOD, context);
    return create(GetHeldTotalsResponseSchema, { totals: await deps.totals.own() });
  };
}
