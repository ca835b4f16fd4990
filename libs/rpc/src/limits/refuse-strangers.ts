import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { describeError, mapError } from "@rollcall/errors";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import type { RpcServerOptions } from "../connect/server-options.ts";
import { strangersRefused } from "../interceptors/record-refusals.ts";

/**
 * Judge a call by its method and its authorization header, before anything else of it is read: the error of one that is
 * for replicas of the cluster alone and comes from another caller, null for any other. Throws at once where nothing can
 * tell a replica.
 */
export function refuseStrangers(
  policies: PolicyTable,
  { authenticateReplica, metrics }: Pick<RpcServerOptions, "authenticateReplica" | "metrics">,
): (method: DescMethod, authorization: string | null) => ConnectError | null {
  const isForReplicas = (name: string) => policies[name]?.caller === "replica";
  const closed = Object.keys(policies).filter(isForReplicas);
  if (closed.length === 0) return () => null;
  if (authenticateReplica === undefined) {
    throw new Error(`nothing tells the replicas that may call ${closed.join(", ")}`);
  }
  const refused = strangersRefused(metrics);
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
