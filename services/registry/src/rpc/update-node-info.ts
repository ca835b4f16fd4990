import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  RegistryService,
  UpdateNodeInfoResponseSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { decideMembership, nodeInfoEvents } from "@rollcall/domain";
import { refusalError, refuse } from "@rollcall/runtime";
import { type NodeRecord, saveInfo } from "@rollcall/store";
import type { Deps } from "../deps.ts";
import { parseInfo } from "../info-report.ts";
import { checkNodeId, checkNonce, lockCaller, required } from "../node-proof.ts";

/** Replace what a node says about itself, for agents without a stream. */
export function updateNodeInfo(
  deps: Deps,
): MethodImpl<typeof RegistryService.method.updateNodeInfo> {
  return async (request) => {
    const { nodeId } = request;
    checkNodeId(nodeId);
    const report = parseInfo(required(request.info, "info"));
    const proof = required(request.proof, "proof");
    checkNonce(deps, proof.nonce);
    const method = RegistryService.method.updateNodeInfo;
    const { result: changed } = await deps.store.change(async (tx) => {
      const node = await lockCaller(tx, deps, { method, nodeId, proof });
      if (node === null) throw notRegistered(nodeId);
      checkMayReturn(node, deps.clock.wallMs());
      const isNew = await saveInfo(tx, nodeId, report);
      return { result: isNew, events: isNew ? nodeInfoEvents(node, report) : [] };
    });
    return create(UpdateNodeInfoResponseSchema, { changed });
  };
}

/** Who could not register now, because it was rejected, is not listened to either. */
function checkMayReturn(node: NodeRecord, atMs: number): void {
  const subject = { ...node, alive: node.connection.state === "CONNECTED" };
  const by = { actor: `node:${node.id}`, message: "", atMs };
  const command = { kind: "register", manualApproval: true } as const;
  const decision = decideMembership(subject, node.id, command, by);
  if (!decision.ok) throw refusalError(decision.refusal, node.id);
}

function notRegistered(node: string): Error {
  const message = `node ${node} is not registered; call RegisterNode first`;
  return refuse("NODE_NOT_REGISTERED", message, { metadata: { node } });
}
