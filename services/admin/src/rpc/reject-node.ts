import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { AdminService, RejectNodeResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { changeNodes } from "../change-nodes.ts";
import type { AdminDeps } from "../deps.ts";
import { decideMembershipOf } from "../node-decision.ts";

/** Reject a node, with the reason that it is told. */
export function rejectNode(deps: AdminDeps): MethodImpl<typeof AdminService.method.rejectNode> {
  const method = AdminService.method.rejectNode;
  return async (request, context) => {
    const answer = await changeNodes(deps, {
      method,
      request,
      context,
      decide: (current, by) => decideMembershipOf(current, { kind: "reject" }, by),
    });
    return create(RejectNodeResponseSchema, answer);
  };
}
