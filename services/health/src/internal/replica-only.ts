import type { DescMethod } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { checkReplicaCall, REPLICA_CREDENTIALS_TTL_MS, refuse } from "@rollcall/runtime";
import type { Deps } from "../deps.ts";

/** Check that another replica of this cluster makes a call. Throws REPLICA_CREDENTIALS_INVALID. */
export function checkReplica(
  { store, replica, clock }: Pick<Deps, "store" | "replica" | "clock">,
  method: DescMethod,
  { requestHeader }: Pick<HandlerContext, "requestHeader">,
): void {
  const wallMs = clock.wallMs();
  const called = { to: replica.instance, method: `/${method.parent.typeName}/${method.name}` };
  const authorization = requestHeader.get("authorization");
  const verdict = checkReplicaCall(store.clusterSecret(), authorization, called, wallMs);
  if (verdict.kind === "valid") return;
  const why =
    verdict.kind === "expired"
      ? `the credentials were made at a time more than ${REPLICA_CREDENTIALS_TTL_MS / 1000} s from now`
      : "this address answers other replicas of its cluster alone; readers call HealthQueryService";
  // With the time a replica whose clock differs can sign anew.
  const metadata = { serverTimeMs: String(Math.trunc(wallMs)) };
  throw refuse("REPLICA_CREDENTIALS_INVALID", why, { metadata });
}
