import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { AdminService, CordonNodeResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { deriveScheduling, placeHold, schedulingEvent } from "@rollcall/domain";
import { changeNodes } from "../change-nodes.ts";
import type { AdminDeps } from "../deps.ts";
import { type DecideNode, refused } from "../node-decision.ts";

/** Let no new work come to a node. */
export function cordonNode(deps: AdminDeps): MethodImpl<typeof AdminService.method.cordonNode> {
  const method = AdminService.method.cordonNode;
  return async (request, context) => {
    const answer = await changeNodes(deps, { method, request, context, decide });
    return create(CordonNodeResponseSchema, answer);
  };
}

const decide: DecideNode = (node, by) => {
  if (node.type === "ORCHESTRATOR") {
    return refused("NODE_IS_ORCHESTRATOR", node.id, "is an orchestrator; no work ever comes to it");
  }
  if (node.holds.some(({ kind }) => kind === "OPERATOR")) {
    return refused("NODE_ALREADY_CORDONED", node.id, "already cordoned");
  }
  const { actor, message, atMs } = by;
  const holds = placeHold(node.holds, { kind: "OPERATOR", sinceMs: atMs, message, actor });
  const event = schedulingEvent({
    subject: node.id,
    before: node.scheduling,
    after: deriveScheduling(holds, atMs),
    actor,
    message,
  });
  return { ok: true, effect: { change: { kind: "holds", holds }, event } };
};
