import { refuse } from "@rollcall/errors";
import { checkReplicaCall, REPLICA_CREDENTIALS_TTL_MS, type ReplicaAuthenticator } from "@rollcall/identity";
import type { HealthServices } from "../health-services.ts";

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
