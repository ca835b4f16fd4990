import type { ConnectRouter } from "@connectrpc/connect";
import { HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { definePolicies, type MethodPolicy, type PolicyTable } from "@rollcall/rpc";
import type { AdminDeps } from "../deps.ts";
import { deleteHealthPolicy } from "../rpc/delete-health-policy.ts";
import { getHealthPolicy } from "../rpc/get-health-policy.ts";
import { listHealthPolicies } from "../rpc/list-health-policies.ts";
import { previewHealthPolicy } from "../rpc/preview-health-policy.ts";
import { setHealthPolicy } from "../rpc/set-health-policy.ts";

/** Every node of the fleet is looked at. */
const CHANGE: MethodPolicy = { caller: "operator", deadlineMs: 30_000, idempotent: false };
const READING: MethodPolicy = { caller: "viewer", deadlineMs: 10_000, idempotent: true };

/** Who may call each method of health policies, for how long, and whether a client may repeat it by itself. */
export const HEALTH_POLICY_POLICIES: PolicyTable = definePolicies(HealthPolicyService, {
  setHealthPolicy: CHANGE,
  getHealthPolicy: READING,
  listHealthPolicies: READING,
  deleteHealthPolicy: CHANGE,
  previewHealthPolicy: { ...READING, deadlineMs: 30_000 },
});

/** Serve health policies: one line a method. */
export function routeHealthPolicies(router: ConnectRouter, deps: AdminDeps): void {
  router.service(HealthPolicyService, {
    setHealthPolicy: setHealthPolicy(deps),
    getHealthPolicy: getHealthPolicy(deps),
    listHealthPolicies: listHealthPolicies(deps),
    deleteHealthPolicy: deleteHealthPolicy(deps),
    previewHealthPolicy: previewHealthPolicy(deps),
  });
}
