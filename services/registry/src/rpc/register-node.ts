import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  CreateChallengeResponseSchema,
  type RegisterNodeRequest,
  RegisterNodeResponseSchema,
  RegistryService,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { parseJoinToken, plainHost } from "@rollcall/domain";
import { createChallenge as createNonce, keyFingerprint, NONCE_TTL_MS } from "@rollcall/identity";
import { auditedCall, peerOfCall } from "@rollcall/rpc";
import { joinTokenHash } from "@rollcall/store";
import { nodeToProto } from "@rollcall/wire";
import { parseInfo } from "../convert.ts";
import { checkNonce, checkPublicKey, checkSignature, required, requireNodeId } from "../node-proof.ts";
import type { PresentedText, Registration } from "../registration/registration.ts";
import type { RegistryServices } from "../registry-services.ts";

/** Let a node join or return. This method makes the checks that need no store; the rest is decided in batches. */
export function registerNode(services: RegistryServices): MethodImpl<typeof RegistryService.method.registerNode> {
  return async (request, context) => {
    const { nodeId } = request;
    const { method } = RegistryService;
    const call = { ...auditedCall(context, method.registerNode), actor: `node:${nodeId}` };
    const parsed = await parseRegistration(services, request);
    const joinToken = await readToken(services, request);
    const registration = { joinToken, from: plainHost(peerOfCall(context)), call, ...parsed };
    const token = registration.joinToken?.hash ?? null;
    const answer = await services.gate.pass(token && Buffer.from(token).toString("base64"), () =>
      services.registrar.register(registration),
    );
    if (!answer.ok) throw answer.error;
    return create(RegisterNodeResponseSchema, {
      node: nodeToProto(answer.node),
      created: answer.created,
      message: answer.message,
      healthEndpoints: [...answer.healthEndpoints],
      clusterId: services.store.clusterId(),
    });
  };
}

async function parseRegistration(
  services: RegistryServices,
  request: RegisterNodeRequest,
): Promise<Omit<Registration, "call" | "from" | "joinToken">> {
  const { nodeId, publicKey } = request;
  requireNodeId(nodeId);
  checkPublicKey(nodeId, publicKey, "public_key");
  const report = parseInfo(required(request.info, "info"));
  const proof = required(request.proof, "proof");
  checkNonce(services, proof.nonce);
  const method = RegistryService.method.registerNode;
  await checkSignature(services.store.clusterId(), { method, nodeId, proof }, publicKey);
  return {
    nodeId,
    publicKey,
    fingerprint: keyFingerprint(publicKey),
    nonce: proof.nonce,
    report,
  };
}

/**
 * Parse the token of a request. The store decides whether the token is valid. Existing nodes do not need a token.
 */
async function readToken(
  { store, accounts }: RegistryServices,
  { nodeId, joinToken: text }: RegisterNodeRequest,
): Promise<PresentedText | null> {
  if (text === "") return null;
  const hash = joinTokenHash(text);
  if (accounts?.isToken(text)) return { token: await accounts.evaluate(text, nodeId), hash };
  return { token: parseJoinToken(text, store.clusterId()), hash };
}

/** Return a nonce. The nonce is not stored, because its content proves who created it and when. */
export function createChallenge({
  store,
  clock,
}: RegistryServices): MethodImpl<typeof RegistryService.method.createChallenge> {
  return () => {
    const nowMs = clock.wallMs();
    return create(CreateChallengeResponseSchema, {
      nonce: createNonce(store.clusterSecret(), nowMs),
      expireTime: timestampFromMs(nowMs + NONCE_TTL_MS),
      clusterId: store.clusterId(),
    });
  };
}
