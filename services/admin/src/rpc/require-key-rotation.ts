import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { AdminService, RequireKeyRotationResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { keyRotationRequiredEvent } from "@rollcall/domain";
import { changeNodes } from "../change-nodes.ts";
import type { AdminDeps } from "../deps.ts";
import { type DecideNode, refused } from "../node-decision.ts";

/** Have a node replace its key. */
export function requireKeyRotation(deps: AdminDeps): MethodImpl<typeof AdminService.method.requireKeyRotation> {
  const method = AdminService.method.requireKeyRotation;
  return async (request, context) => {
    const answer = await changeNodes(deps, { method, request, context, decide });
    return create(RequireKeyRotationResponseSchema, answer);
  };
}

const decide: DecideNode = (node, { actor, message }) => {
  const { id, keyFingerprint, keyRotationRequiredSinceMs: sinceMs } = node;
  if (keyFingerprint === null) {
    return refused("NODE_IS_ORCHESTRATOR", id, "is an orchestrator; it has no key");
  }
  if (sinceMs !== null) {
    const since = new Date(sinceMs).toISOString();
    return refused("KEY_ROTATION_ALREADY_REQUIRED", id, `already told to rotate its key, ${since}`);
  }
  const event = keyRotationRequiredEvent({ subject: id, actor, message, keyFingerprint });
  return { ok: true, effect: { change: { kind: "key-rotation" }, event } };
};
