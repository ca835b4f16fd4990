import type { ConnectRouter } from "@connectrpc/connect";
import { HealthInternalService } from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import { refuse } from "@rollcall/errors";
import { checkReplicaCall, REPLICA_CREDENTIALS_TTL_MS, type ReplicaAuthenticator } from "@rollcall/identity";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import type { HealthServices } from "../health-services.ts";
import { readHeldLog } from "../work/read-log.ts";
import {
  forwardHeartbeat,
  getHeldNodes,
  getHeldTotals,
  getReplicaState,
  type InternalServices,
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
  readHeldLog: { caller: "replica", deadlineMs: 0, idempotent: true },
  forwardHeartbeat: { caller: "replica", deadlineMs: 2_000, idempotent: false },
});

/** One line a method. */
export function createInternalRoutes(services: InternalServices): (router: ConnectRouter) => void {
  return (router) => {
    router.service(HealthInternalService, {
      getHeldNodes: getHeldNodes(services),
      watchHeldNodes: watchHeldNodes(services),
      getHeldTotals: getHeldTotals(services),
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
    const verdict = checkReplicaCall(store.clusterSecret(), authorization, called, wallMs);
    if (verdict.kind === "valid") return;
    const why =
      verdict.kind === "expired"
        ? `the credentials were made at a time more than ${REPLICA_CREDENTIALS_TTL_MS / 1000} s from now`
        : "this address answers other replicas of its cluster alone; readers call HealthQueryService";
    // With the time, a replica whose clock differs can sign again.
    const metadata = { serverTimeMs: String(Math.trunc(wallMs)) };
    throw refuse("REPLICA_CREDENTIALS_INVALID", why, { metadata });
  };
}
