import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { describeError, mapError } from "@rollcall/errors";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import type { RpcServerOptions } from "../server-options.ts";
import { anonymousRefused } from "./record-refusals.ts";

/**
 * Create the check of a call by its method and its authorization header, before anything else of the call is read.
 * The check returns an error if the method is only for replicas of the cluster and the caller is not a replica,
 * otherwise null.
 *
 * Throws if there are methods for replicas, but no way to authenticate replicas.
 */
export function refuseAnonymous(
  policies: PolicyTable,
  { authenticateReplica, metrics }: Pick<RpcServerOptions, "authenticateReplica" | "metrics">,
): (method: DescMethod, authorization: string | null) => ConnectError | null {
  const isForReplicas = (name: string) => policies[name]?.caller === "replica";
  const closed = Object.keys(policies).filter(isForReplicas);
  if (closed.length === 0) return () => null;
  if (authenticateReplica === undefined) {
    throw new Error(`authenticateReplica is required: only replicas can call ${closed.join(", ")}`);
  }
  const refused = anonymousRefused(metrics);
  return (method, authorization) => {
    const name = methodName(method);
    if (!isForReplicas(name)) return null;
    try {
      authenticateReplica(method, authorization);
      return null;
    } catch (error) {
      const refusal = mapError(error);
      refused.inc({ method: name, reason: describeError(refusal).reason ?? "" });
      return refusal;
    }
  };
}
