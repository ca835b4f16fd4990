import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  RegistryService,
  type RotateNodeKeyRequest,
  RotateNodeKeyResponseSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { decideRotation, keyOfferedEvent, type NodeIdentity } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { keyFingerprint } from "@rollcall/identity";
import { auditedCall } from "@rollcall/rpc";
import {
  AUDIT_OK,
  findBans,
  getNode,
  keyOf,
  lockBans,
  type NodeKey,
  ownersOfKeys,
  saveNextKey,
  type Tx,
} from "@rollcall/store";
import {
  checkMayReturn,
  checkNextSignature,
  checkNonce,
  checkPublicKey,
  findKey,
  type LockedCaller,
  lockCaller,
  type NodeCall,
  notRegistered,
  required,
  requireNodeId,
} from "../node-proof.ts";
import type { RegistryServices } from "../registry-services.ts";

/** Accept the key that a node will use from now on. */
export function rotateNodeKey(services: RegistryServices): MethodImpl<typeof RegistryService.method.rotateNodeKey> {
  return async (request, context) => {
    const { call, next } = parseRotation(services, request);
    await checkIsKnown(services, call);
    const { nodeId, method } = call;
    const { result: identity } = await services.store.change(async (tx) => {
      // Take this lock before locking any row. Registrations take it too, so that neither a ban nor a registration can
      // add another owner of the key in the meantime.
      await lockBans(tx);
      const caller = await lockCaller(tx, services, call);
      if (caller === null) throw notRegistered(nodeId);
      checkMayReturn(services, caller.node);
      const before = identityOf(caller);
      const after = await decide(tx, caller, next);
      const { events } = caller;
      if (after.next === before.next) return { result: after, events };
      await saveNextKey(tx, next);
      const offered = { subject: nodeId, before: before.next, after: next.fingerprint };
      const by = { ...auditedCall(context, method), actor: `node:${nodeId}` };
      const audit = [{ ...by, target: nodeId, reason: next.fingerprint, outcome: AUDIT_OK }];
      return { result: after, events: [...events, keyOfferedEvent(offered)], audit };
    });
    return create(RotateNodeKeyResponseSchema, {
      keyFingerprint: identity.current,
      nextKeyFingerprint: identity.next ?? "",
    });
  };
}

function parseRotation(
  services: RegistryServices,
  request: RotateNodeKeyRequest,
): { readonly call: NodeCall; readonly next: NodeKey } {
  const { nodeId, nextPublicKey: publicKey, nextSignature: signature } = request;
  requireNodeId(nodeId);
  checkPublicKey(nodeId, publicKey, "next_public_key");
  const proof = required(request.proof, "proof");
  checkNonce(services, proof.nonce);
  const call = { method: RegistryService.method.rotateNodeKey, nodeId, proof };
  checkNextSignature(services.store.clusterId(), call, { publicKey, signature });
  return { call, next: { nodeId, publicKey, fingerprint: keyFingerprint(publicKey) } };
}

/**
 * Check the caller before taking the lock, so that anonymous clients cannot delay bans and registrations. The check is
 * repeated under the lock.
 */
async function checkIsKnown(services: RegistryServices, call: NodeCall): Promise<void> {
  const { nodeId } = call;
  const keys = (await keyOf(services.store.db, [nodeId])).get(nodeId);
  if (keys === undefined && (await getNode(services.store.db, nodeId)) === null) {
    throw notRegistered(nodeId);
  }
  findKey(services, call, keys);
}

async function decide(tx: Tx, caller: LockedCaller, next: NodeKey): Promise<NodeIdentity> {
  const { nodeId, fingerprint: offered } = next;
  const owner = (await ownersOfKeys(tx, [offered])).get(offered) ?? nodeId;
  const [ban] = await findBans(tx, { nodeIds: [nodeId], fingerprints: [offered] });
  const decision = decideRotation(identityOf(caller), {
    nodeId,
    used: caller.used,
    offered,
    otherOwner: owner === nodeId ? null : owner,
    banReason: ban?.reason ?? null,
  });
  if (!decision.ok) throw refusalError(decision.refusal, nodeId);
  return decision.identity;
}

function identityOf({ node, used }: LockedCaller): NodeIdentity {
  return { current: used, next: node.nextKeyFingerprint };
}
