import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { DeregisterNodeResponseSchema, RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { decideMembership, membershipEvent } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { auditedCall } from "@rollcall/rpc";
import { AUDIT_OK, removeNode } from "@rollcall/store";
import { checkNodeId, checkNonce, lockCaller, required } from "../node-proof.ts";
import type { RegistryServices } from "../registry-services.ts";

/** Remove a node that leaves for good. */
export function deregisterNode(deps: RegistryServices): MethodImpl<typeof RegistryService.method.deregisterNode> {
  return async ({ nodeId, proof: givenProof, reason: message }, context) => {
    const proof = required(givenProof, "proof");
    checkNodeId(nodeId);
    checkNonce(deps, proof.nonce);
    const method = RegistryService.method.deregisterNode;
    await deps.store.change(async (tx) => {
      const caller = await lockCaller(tx, deps, { method, nodeId, proof });
      const node = caller?.node ?? null;
      const actor = `node:${nodeId}`;
      const by = { actor, message, atMs: deps.clock.wallMs() };
      const subject = node && { ...node, alive: node.connection.state === "CONNECTED" };
      const decision = decideMembership(subject, nodeId, { kind: "deregister" }, by);
      if (!decision.ok) throw refusalError(decision.refusal, nodeId);
      if (node === null) return { result: null, events: [] };
      await removeNode(tx, node, { actor, reason: "AGENT_DEREGISTERED", message });
      const event = membershipEvent({
        type: "node.deregistered",
        subject: nodeId,
        before: node.membership,
        after: null,
        actor,
        message,
      });
      const call = { ...auditedCall(context, method), actor };
      const audit = [{ ...call, target: nodeId, reason: message, outcome: AUDIT_OK }];
      return { result: null, events: [...(caller?.events ?? []), event], audit };
    });
    return create(DeregisterNodeResponseSchema);
  };
}
