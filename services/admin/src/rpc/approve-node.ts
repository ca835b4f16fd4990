import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { AdminService, ApproveNodeResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { changeNodes } from "../change-nodes.ts";
import type { AdminDeps } from "../deps.ts";
import { decideMembershipOf } from "../node-decision.ts";

/** Approve a node that is pending or was rejected. */
export function approveNode(deps: AdminDeps): MethodImpl<typeof AdminService.method.approveNode> {
  const method = AdminService.method.approveNode;
  return async (request, context) => {
    const answer = await changeNodes(deps, {
      method,
      request,
      context,
      decide: (current, by) => decideMembershipOf(current, { kind: "approve" }, by),
    });
    return create(ApproveNodeResponseSchema, answer);
  };
}
