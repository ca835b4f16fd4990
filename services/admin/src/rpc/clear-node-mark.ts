import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { AdminService, ClearNodeMarkResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { healthEvent } from "@rollcall/domain";
import { changeNodes } from "../change-nodes.ts";
import type { AdminDeps } from "../deps.ts";
import { type DecideNode, refused } from "../node-decision.ts";

/** Clear the operator's mark; what was detected shows again. */
export function clearNodeMark(deps: AdminDeps): MethodImpl<typeof AdminService.method.clearNodeMark> {
  const method = AdminService.method.clearNodeMark;
  return async (request, context) => {
    const verb = { method, request, context, decide, readsHealth: true };
    const answer = await changeNodes(deps, verb);
    return create(ClearNodeMarkResponseSchema, answer);
  };
}

const decide: DecideNode = (node, { actor, message }) => {
  if (node.mark === null) return refused("NODE_NOT_MARKED", node.id, "is not marked unhealthy");
  const change = healthEvent({
    subject: node.id,
    before: node.health,
    after: node.recordedHealth,
  });
  // What shows again was detected by a replica, some time ago; that it shows is the operator's doing.
  const event = { ...change, actor, message, reason: "OPERATOR_MARK_CLEARED" };
  return { ok: true, effect: { change: { kind: "mark", mark: null }, event } };
};
