import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { RegistryService, UpdateNodeInfoResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { nodeInfoEvents } from "@rollcall/domain";
import { auditedCall } from "@rollcall/rpc";
import { AUDIT_OK, saveInfo } from "@rollcall/store";
import { parseInfo } from "../info-report.ts";
import { checkMayReturn, checkNodeId, checkNonce, lockCaller, notRegistered, required } from "../node-proof.ts";
import type { RegistryServices } from "../registry-services.ts";

/** Replace what a node says about itself, for agents without a stream. */
export function updateNodeInfo(deps: RegistryServices): MethodImpl<typeof RegistryService.method.updateNodeInfo> {
  return async (request, context) => {
    const { nodeId } = request;
    checkNodeId(nodeId);
    const report = parseInfo(required(request.info, "info"));
    const proof = required(request.proof, "proof");
    checkNonce(deps, proof.nonce);
    const method = RegistryService.method.updateNodeInfo;
    const { result: changed } = await deps.store.change(async (tx) => {
      const caller = await lockCaller(tx, deps, { method, nodeId, proof });
      if (caller === null) throw notRegistered(nodeId);
      const { node, events } = caller;
      checkMayReturn(node, deps.clock.wallMs());
      const saved = await saveInfo(tx, nodeId, report);
      if (saved !== "saved") return { result: false, events };
      const call = { ...auditedCall(context, method), actor: `node:${nodeId}` };
      const audit = [{ ...call, target: nodeId, reason: "", outcome: AUDIT_OK }];
      return { result: true, events: [...events, ...nodeInfoEvents(node, report)], audit };
    });
    return create(UpdateNodeInfoResponseSchema, { changed });
  };
}
