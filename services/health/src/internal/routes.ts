import type { ConnectRouter } from "@connectrpc/connect";
import { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { refuse } from "@rollcall/errors";
import { checkReplicaCall, REPLICA_CREDENTIALS_TTL_MS, type ReplicaAuthenticator } from "@rollcall/identity";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import type { HealthServices } from "../health-services.ts";
import {
  forwardHeartbeat,
  getLiveNodes,
  getLiveTotals,
  getReplicaState,
  type InternalServices,
  probeNodes,
  watchLiveNodes,
} from "../rpc/internal-methods.ts";
import { readHeldLog } from "../work/read-log.ts";

/** The services for other replicas, on a separate port. */
export const INTERNAL_SERVICES = [HealthInternalService];

/** Who can call each method. See replicasOnly(): no access token is valid on this port. */
export const INTERNAL_POLICIES: PolicyTable = definePolicies(HealthInternalService, {
  getLiveNodes: { caller: "replica", deadlineMs: 2_000, idempotent: true },
  watchLiveNodes: { caller: "replica", deadlineMs: 0, idempotent: true },
  getLiveTotals: { caller: "replica", deadlineMs: 2_000, idempotent: true },
  probeNodes: { caller: "replica", deadlineMs: 2_000, idempotent: true },
  getReplicaState: { caller: "replica", deadlineMs: 2_000, idempotent: true },
  readHeldLog: { caller: "replica", deadlineMs: 0, idempotent: true },
  forwardHeartbeat: { caller: "replica", deadlineMs: 2_000, idempotent: false },
});

export function createInternalRoutes(services: InternalServices): (router: ConnectRouter) => void {
  return (router) => {
    router.service(HealthInternalService, {
      getLiveNodes: getLiveNodes(services),
      watchLiveNodes: watchLiveNodes(services),
      getLiveTotals: getLiveTotals(services),
      probeNodes: probeNodes(services),
      forwardHeartbeat: forwardHeartbeat(services),
      getReplicaState: getReplicaState(services),
      readHeldLog: readHeldLog(services),
    });
  };
}

/** Admit only other replicas of this cluster. */
export function replicasOnly({
  store,
  replica,
  clock,
}: Pick<HealthServices, "store" | "replica" | "clock">): ReplicaAuthenticator {
  return (method, authorization) => {
    const wallMs = clock.wallMs();
    const called = { to: replica.instance, method: `/${method.parent.typeName}/${method.name}` };
    const decision = checkReplicaCall(store.clusterSecret(), authorization, called, wallMs);
    if (decision.kind === "valid") return;
    const why =
      decision.kind === "expired"
        ? `the time of the credentials differs from the server's by more than ${REPLICA_CREDENTIALS_TTL_MS / 1000} s`
        : "this port is only for other replicas of the cluster; call HealthQueryService on the query port instead";
    // Return the server's time, so that a replica whose clock differs can sign again with it.
    const metadata = { serverTimeMs: String(Math.trunc(wallMs)) };
    throw refuse("REPLICA_CREDENTIALS_INVALID", why, { metadata });
  };
}
