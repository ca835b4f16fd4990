import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  DeregisterNodeResponseSchema,
  RegistryService,
  UpdateNodeInfoResponseSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { changeMembership, nodeInfoEvents, nothingToLeave } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { auditedCall } from "@rollcall/rpc";
import { AUDIT_OK, saveInfo, saveNodeEffects } from "@rollcall/store";
import { parseInfo } from "../convert.ts";
import { checkMayReturn, checkNonce, lockCaller, notRegistered, required, requireNodeId } from "../node-proof.ts";
import type { RegistryServices } from "../registry-services.ts";

/** Replace a node's report about itself, for agents without a stream. */
export function updateNodeInfo(services: RegistryServices): MethodImpl<typeof RegistryService.method.updateNodeInfo> {
  return async (request, context) => {
    const { nodeId } = request;
    requireNodeId(nodeId);
    const report = parseInfo(required(request.info, "info"));
    const proof = required(request.proof, "proof");
    checkNonce(services, proof.nonce);
    const method = RegistryService.method.updateNodeInfo;
    const { result: changed } = await services.store.change(async (tx) => {
      const caller = await lockCaller(tx, services, { method, nodeId, proof });
      if (caller === null) throw notRegistered(nodeId);
      const { node, events } = caller;
      checkMayReturn(services, node);
      const saved = await saveInfo(tx, nodeId, report);
      if (saved !== "saved") return { result: false, events };
      const call = { ...auditedCall(context, method), actor: `node:${nodeId}` };
      const audit = [{ ...call, target: nodeId, reason: "", outcome: AUDIT_OK }];
      return { result: true, events: [...events, ...nodeInfoEvents(node, report)], audit };
    });
    return create(UpdateNodeInfoResponseSchema, { changed });
  };
}

/** Remove a node that leaves for good. */
export function deregisterNode(services: RegistryServices): MethodImpl<typeof RegistryService.method.deregisterNode> {
  return async ({ nodeId, proof: givenProof, reason: message }, context) => {
    const proof = required(givenProof, "proof");
    requireNodeId(nodeId);
    checkNonce(services, proof.nonce);
    const method = RegistryService.method.deregisterNode;
    await services.store.change(async (tx) => {
      const caller = await lockCaller(tx, services, { method, nodeId, proof });
      if (caller === null) throw refusalError(nothingToLeave(nodeId), nodeId);
      const { node } = caller;
      const actor = `node:${nodeId}`;
      const by = { actor, message, atMs: services.clock.wallMs() };
      const decided = changeMembership(node, { kind: "deregister" }, by);
      if (!decided.ok) throw refusalError(decided.refusal, nodeId);
      await saveNodeEffects(tx, node, decided.effects);
      const call = { ...auditedCall(context, method), actor };
      const audit = [{ ...call, target: nodeId, reason: message, outcome: AUDIT_OK }];
      return { result: null, events: [...caller.events, ...decided.events], audit };
    });
    return create(DeregisterNodeResponseSchema);
  };
}
