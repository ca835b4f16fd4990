import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { AdminService, UncordonNodeResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { deriveScheduling, liftHold, schedulingEvent } from "@rollcall/domain";
import { changeNodes } from "../change-nodes.ts";
import type { AdminDeps } from "../deps.ts";
import { type DecideNode, refused } from "../node-decision.ts";

/** Lift the operator's hold; holds of other owners stay. */
export function uncordonNode(deps: AdminDeps): MethodImpl<typeof AdminService.method.uncordonNode> {
  const method = AdminService.method.uncordonNode;
  return async (request, context) => {
    const answer = await changeNodes(deps, { method, request, context, decide });
    return create(UncordonNodeResponseSchema, answer);
  };
}

const decide: DecideNode = (node, by) => {
  const holds = liftHold(node.holds, "OPERATOR");
  if (holds === node.holds) return refused("NODE_NOT_CORDONED", node.id, "is not cordoned");
  const event = schedulingEvent({
    subject: node.id,
    before: node.scheduling,
    after: deriveScheduling(holds, by.atMs),
    actor: by.actor,
    message: by.message,
  });
  return { ok: true, effect: { change: { kind: "holds", holds }, event } };
};
