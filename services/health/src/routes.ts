import type { ConnectRouter } from "@connectrpc/connect";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { definePolicies, type PolicyTable } from "@rollcall/runtime";
import type { Deps } from "./deps.ts";
import { getNodeHealth } from "./rpc/get-node-health.ts";
import { listNodeHealth } from "./rpc/list-node-health.ts";

/** What health serves to readers. */
export const SERVICES = [HealthQueryService];

/** Who may call each method, for how long, and whether a client may repeat it by itself. */
export const POLICIES: PolicyTable = definePolicies(HealthQueryService, {
  getNodeHealth: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  listNodeHealth: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
});

/** One line a method. */
export function createRoutes(deps: Deps): (router: ConnectRouter) => void {
  return (router) => {
    router.service(HealthQueryService, {
      getNodeHealth: getNodeHealth(deps),
      listNodeHealth: listNodeHealth(deps),
    });
  };
}
