import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { AdminService, MarkNodeUnhealthyResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { effectiveHealth, healthEvent, type Mark } from "@rollcall/domain";
import { changeNodes } from "../change-nodes.ts";
import type { AdminDeps } from "../deps.ts";
import { type DecideNode, refused } from "../node-decision.ts";

/** Show a node as UNHEALTHY, whatever it sends. */
export function markNodeUnhealthy(deps: AdminDeps): MethodImpl<typeof AdminService.method.markNodeUnhealthy> {
  const method = AdminService.method.markNodeUnhealthy;
  return async (request, context) => {
    const verb = { method, request, context, decide, readsHealth: true };
    const answer = await changeNodes(deps, verb);
    return create(MarkNodeUnhealthyResponseSchema, answer);
  };
}

const decide: DecideNode = (node, { actor, message, atMs }) => {
  if (node.type === "ORCHESTRATOR") {
    const text = "is an orchestrator; its connection alone says how it fares";
    return refused("NODE_IS_ORCHESTRATOR", node.id, text);
  }
  if (node.mark !== null) return refused("NODE_ALREADY_MARKED", node.id, "already marked unhealthy");
  const mark: Mark = { sinceMs: atMs, message, actor };
  const after = effectiveHealth(node.recordedHealth, mark);
  const event = healthEvent({ subject: node.id, before: node.health, after });
  return { ok: true, effect: { change: { kind: "mark", mark }, event } };
};
