import { isDeepStrictEqual } from "node:util";
import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { AcceptNodeHardwareResponseSchema, AdminService } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { hardwareAcceptedEvent, hardwareFacts, hardwareOf } from "@rollcall/domain";
import { changeNodes } from "../change-nodes.ts";
import type { AdminDeps } from "../deps.ts";
import { type DecideNode, refused } from "../node-decision.ts";

/** Take a node's hardware as it is now for what it should be. */
export function acceptNodeHardware(deps: AdminDeps): MethodImpl<typeof AdminService.method.acceptNodeHardware> {
  const method = AdminService.method.acceptNodeHardware;
  return async (request, context) => {
    const answer = await changeNodes(deps, { method, request, context, decide });
    return create(AcceptNodeHardwareResponseSchema, answer);
  };
}

const decide: DecideNode = (node, { actor, message }) => {
  const { id, type, approvedHardware, info } = node;
  if (type === "ORCHESTRATOR") {
    return refused("NODE_IS_ORCHESTRATOR", id, "is an orchestrator; its hardware is not watched");
  }
  const present = hardwareOf(info ?? undefined);
  if (present === null) {
    return refused("NODE_HARDWARE_UNKNOWN", id, "has not said yet what its hardware is");
  }
  const before = approvedHardware === null ? null : hardwareFacts(approvedHardware);
  const after = hardwareFacts(present);
  if (isDeepStrictEqual(before, after)) {
    const text = "has the hardware that was accepted of it; nothing is missing and nothing is new";
    return refused("NODE_HARDWARE_UNCHANGED", id, text);
  }
  const event = hardwareAcceptedEvent({ subject: id, actor, message, before, after });
  return { ok: true, effect: { change: { kind: "hardware" }, event } };
};
