import type { ConnectRouter } from "@connectrpc/connect";
import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { AuditService } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { BrakeService } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { HealthPolicyService } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { JoinTokenService } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { definePolicies, type MethodPolicy, type PolicyTable } from "@rollcall/rpc";
import { ACCESS_POLICIES, routeAccess } from "./access/access-routes.ts";
import { AUDIT_POLICIES, routeAudit } from "./audit/audit-routes.ts";
import { BRAKE_POLICIES, routeBrake } from "./brake/brake-routes.ts";
import type { AdminDeps } from "./deps.ts";
import { HEALTH_POLICY_POLICIES, routeHealthPolicies } from "./health-policy/policy-routes.ts";
import { JOIN_TOKEN_POLICIES, routeJoinTokens } from "./join-tokens/join-token-routes.ts";
import { acceptNodeHardware } from "./rpc/accept-node-hardware.ts";
import { approveNode } from "./rpc/approve-node.ts";
import { banNode } from "./rpc/ban-node.ts";
import { clearNodeMark } from "./rpc/clear-node-mark.ts";
import { cordonNode } from "./rpc/cordon-node.ts";
import { deleteNode } from "./rpc/delete-node.ts";
import { listBans } from "./rpc/list-bans.ts";
import { markNodeUnhealthy } from "./rpc/mark-node-unhealthy.ts";
import { rejectNode } from "./rpc/reject-node.ts";
import { requireKeyRotation } from "./rpc/require-key-rotation.ts";
import { setNodeLabels } from "./rpc/set-node-labels.ts";
import { unbanNode } from "./rpc/unban-node.ts";
import { uncordonNode } from "./rpc/uncordon-node.ts";

/** What admin serves. */
export const SERVICES = [
  AdminService,
  AccessService,
  JoinTokenService,
  AuditService,
  HealthPolicyService,
  BrakeService,
];

/**
 * An operator's decision. To repeat one is refused, unless it carries a request id, so no client may do so by itself.
 */
const DECISION: MethodPolicy = { caller: "operator", deadlineMs: 30_000, idempotent: false };
const READING: MethodPolicy = { caller: "viewer", deadlineMs: 10_000, idempotent: true };

/** Who may call each method, for how long, and whether a client may repeat it by itself. */
export const POLICIES: PolicyTable = {
  ...definePolicies(AdminService, {
    approveNode: DECISION,
    rejectNode: DECISION,
    deleteNode: DECISION,
    cordonNode: DECISION,
    uncordonNode: DECISION,
    requireKeyRotation: DECISION,
    acceptNodeHardware: DECISION,
    markNodeUnhealthy: DECISION,
    clearNodeMark: DECISION,
    banNode: DECISION,
    unbanNode: DECISION,
    listBans: READING,
    setNodeLabels: DECISION,
  }),
  ...ACCESS_POLICIES,
  ...HEALTH_POLICY_POLICIES,
  ...BRAKE_POLICIES,
  ...AUDIT_POLICIES,
  ...JOIN_TOKEN_POLICIES,
};

/** One line a method. */
export function createRoutes(deps: AdminDeps): (router: ConnectRouter) => void {
  return (router) => {
    router.service(AdminService, {
      approveNode: approveNode(deps),
      rejectNode: rejectNode(deps),
      deleteNode: deleteNode(deps),
      cordonNode: cordonNode(deps),
      uncordonNode: uncordonNode(deps),
      requireKeyRotation: requireKeyRotation(deps),
      acceptNodeHardware: acceptNodeHardware(deps),
      markNodeUnhealthy: markNodeUnhealthy(deps),
      clearNodeMark: clearNodeMark(deps),
      banNode: banNode(deps),
      unbanNode: unbanNode(deps),
      listBans: listBans(deps),
      setNodeLabels: setNodeLabels(deps),
    });
    routeAccess(router, deps);
    routeHealthPolicies(router, deps);
    routeBrake(router, deps);
    routeAudit(router, deps);
    routeJoinTokens(router, deps);
  };
}
