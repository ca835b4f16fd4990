import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { AdminService, DeleteNodeResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { changeNodes } from "../change-nodes.ts";
import type { AdminDeps } from "../deps.ts";
import { decideMembershipOf } from "../node-decision.ts";

/** Remove a node from the record; it may register again, as a new one. */
export function deleteNode(deps: AdminDeps): MethodImpl<typeof AdminService.method.deleteNode> {
  const method = AdminService.method.deleteNode;
  return async (request, context) => {
    const answer = await changeNodes(deps, {
      method,
      request,
      context,
      decide: (current, by) => decideMembershipOf(current, { kind: "delete" }, by),
    });
    return create(DeleteNodeResponseSchema, answer);
  };
}
