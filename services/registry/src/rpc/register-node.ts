import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type RegisterNodeRequest,
  RegisterNodeResponseSchema,
  RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { keyFingerprint, PUBLIC_KEY_BYTES, refuse } from "@rollcall/runtime";
import { nodeToProto } from "@rollcall/wire";
import type { Deps } from "../deps.ts";
import { parseInfo } from "../info-report.ts";
import { checkNodeId, checkNonce, checkSignature, required } from "../node-proof.ts";
import type { Registration } from "../registration/registration.ts";

/** Let a node join, or return. What costs no look at the record is checked here; the rest is decided in batches. */
export function registerNode(deps: Deps): MethodImpl<typeof RegistryService.method.registerNode> {
  return async (request) => {
    const registration = parseRegistration(deps, request);
    const answer = await deps.registrar.register(registration);
    if (!answer.ok) throw answer.error;
    return create(RegisterNodeResponseSchema, {
      node: nodeToProto(answer.node),
      created: answer.created,
      message: answer.message,
      healthEndpoints: [...answer.healthEndpoints],
      clusterId: deps.store.clusterId(),
    });
  };
}

function parseRegistration(deps: Deps, request: RegisterNodeRequest): Registration {
  const { nodeId, publicKey } = request;
  checkNodeId(nodeId);
  checkPublicKey(nodeId, publicKey);
  const report = parseInfo(required(request.info, "info"));
  const proof = required(request.proof, "proof");
  checkNonce(deps, proof.nonce);
  const method = RegistryService.method.registerNode;
  checkSignature(deps.store.clusterId(), { method, nodeId, proof }, publicKey);
  return {
    nodeId,
    publicKey,
    fingerprint: keyFingerprint(publicKey),
    nonce: proof.nonce,
    report,
  };
}

function checkPublicKey(node: string, publicKey: Uint8Array): void {
  if (publicKey.length === PUBLIC_KEY_BYTES) return;
  const description = `a public key is a raw Ed25519 key of ${PUBLIC_KEY_BYTES} bytes, not ${publicKey.length}`;
  throw refuse("INVALID_PUBLIC_KEY", `node ${node}: ${description}`, {
    metadata: { node, bytes: String(publicKey.length) },
    violations: [{ field: "public_key", description }],
  });
}
