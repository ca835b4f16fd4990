import type { ConnectRouter } from "@connectrpc/connect";
import { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import type { HealthServices } from "../health-services.ts";
import {
  forwardHeartbeat,
  getHeldNodes,
  getHeldTotals,
  getReplicaState,
  probeNodes,
  watchHeldNodes,
} from "./internal-methods.ts";

/** The services for other replicas, on a port of their own. */
export const INTERNAL_SERVICES = [HealthInternalService];

/** See replicasOnly(): no access token is valid on this port. */
export const INTERNAL_POLICIES: PolicyTable = definePolicies(HealthInternalService, {
  getHeldNodes: { caller: "replica", deadlineMs: 2_000, idempotent: true },
  watchHeldNodes: { caller: "replica", deadlineMs: 0, idempotent: true },
  getHeldTotals: { caller: "replica", deadlineMs: 2_000, idempotent: true },
  probeNodes: { caller: "replica", deadlineMs: 2_000, idempotent: true },
  getReplicaState: { caller: "replica", deadlineMs: 2_000, idempotent: true },
  forwardHeartbeat: { caller: "replica", deadlineMs: 2_000, idempotent: false },
});

/** One line a method. */
export function createInternalRoutes(services: HealthServices): (router: ConnectRouter) => void {
  return (router) => {
    router.service(HealthInternalService, {
      getHeldNodes: getHeldNodes(services),
      watchHeldNodes: watchHeldNodes(services),
      getHeldTotals: getHeldTotals(services),
      probeNodes: probeNodes(services),
      forwardHeartbeat: forwardHeartbeat(services),
      getReplicaState: getReplicaState(services),
    });
  };
}
