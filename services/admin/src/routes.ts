import type { ConnectRouter } from "@connectrpc/connect";
import { AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { definePolicies, type MethodPolicy, type PolicyTable } from "@rollcall/runtime";
import type { AdminDeps } from "./deps.ts";
import { approveNode } from "./rpc/approve-node.ts";
import { clearNodeMark } from "./rpc/clear-node-mark.ts";
import { cordonNode } from "./rpc/cordon-node.ts";
import { deleteNode } from "./rpc/delete-node.ts";
import { markNodeUnhealthy } from "./rpc/mark-node-unhealthy.ts";
import { rejectNode } from "./rpc/reject-node.ts";
import { uncordonNode } from "./rpc/uncordon-node.ts";

/** What admin serves. */
export const SERVICES = [AdminService];

/** An operator's decision. To repeat one is refused, unless it carries a request id, so no client may do so by itself. */
const DECISION: MethodPolicy = { caller: "operator", deadlineMs: 10_000, idempotent: false };

/** Who may call each method, for how long, and whether a client may repeat it by itself. */
export const POLICIES: PolicyTable = definePolicies(AdminService, {
  approveNode: DECISION,
  rejectNode: DECISION,
  deleteNode: DECISION,
  cordonNode: DECISION,
  uncordonNode: DECISION,
  markNodeUnhealthy: DECISION,
  clearNodeMark: DECISION,
});

/** One line a method. */
export function createRoutes(deps: AdminDeps): (router: ConnectRouter) => void {
  return (router) => {
    router.service(AdminService, {
      approveNode: approveNode(deps),
      rejectNode: rejectNode(deps),
      deleteNode: deleteNode(deps),
      cordonNode: cordonNode(deps),
      uncordonNode: uncordonNode(deps),
      markNodeUnhealthy: markNodeUnhealthy(deps),
      clearNodeMark: clearNodeMark(deps),
    });
  };
}
