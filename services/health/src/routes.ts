import type { ConnectRouter } from "@connectrpc/connect";
import { HealthQueryService } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import type { HealthServices } from "./health-services.ts";
import { getClusterHealth, getNodeHealth, listNodeHealth, watchNodeHealth } from "./rpc/query-methods.ts";
import { reportHeartbeat } from "./rpc/report-heartbeat.ts";
import { readExecutionLog } from "./work/read-log.ts";

/** The services of health for readers. */
export const SERVICES = [HealthQueryService];

/** Who can call each method, for how long, and whether a client can retry it automatically. */
export const POLICIES: PolicyTable = definePolicies(HealthQueryService, {
  getNodeHealth: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  listNodeHealth: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  watchNodeHealth: { caller: "viewer", deadlineMs: 0, idempotent: true },
  getClusterHealth: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  readExecutionLog: { caller: "submitter", deadlineMs: 0, idempotent: true },
  reportHeartbeat: { caller: "node", deadlineMs: 30_000, idempotent: false },
});

export function createRoutes(services: HealthServices): (router: ConnectRouter) => void {
  return (router) => {
    router.service(HealthQueryService, {
      getNodeHealth: getNodeHealth(services),
      listNodeHealth: listNodeHealth(services),
      watchNodeHealth: watchNodeHealth(services),
      getClusterHealth: getClusterHealth(services),
      reportHeartbeat: reportHeartbeat(services),
      readExecutionLog: readExecutionLog(services),
    });
  };
}
