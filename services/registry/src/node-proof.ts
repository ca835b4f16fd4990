import type { DescMethod } from "@bufbuild/protobuf";
import type { NodeProof } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import {
  checkNodeId,
  decideMembership,
  keyRotatedEvent,
  type NewEvent,
  PUBLIC_KEY_BYTES,
  type PublicKeyFlaw,
  proofText,
  publicKeyFlaw,
} from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { checkChallenge, NONCE_TTL_MS, verifyProof, verifyProofAside } from "@rollcall/identity";
import {
  keyOf,
  keysInForce,
  lockNode,
  type NodeKeys,
  type NodeRecord,
  type PublicKey,
  promoteKey,
  type Tx,
  useChallenge,
} from "@rollcall/store";
import { refusalOfNode } from "./registration/registration.ts";
import type { RegistryServices } from "./registry-services.ts";

/** A call by which a node speaks for itself. */
export interface NodeCall {
  readonly method: DescMethod;
  readonly nodeId: string;
  readonly proof: NodeProof;
}

/** Check that an id can be a node's. Throws INVALID_NODE_ID. */
export function requireNodeId(nodeId: string): void {
  const invalid = checkNodeId(nodeId, "node_id");
  if (invalid !== null) throw refuse(invalid.reason, invalid.message, invalid);
}

/** A field that the contract requires, so that it is there. */
export function required<T>(value: T | undefined, field: string): T {
  if (value !== undefined) return value;
  const description = "value is required";
  throw refuse("INVALID_REQUEST", `${field}: ${description}`, {
    violations: [{ field, description }],
  });
}

/** Check that a nonce was made by this cluster and is young. Throws CHALLENGE_INVALID. */
export function checkNonce({ store, clock }: Pick<RegistryServices, "store" | "clock">, nonce: Uint8Array): void {
  const verdict = checkChallenge(store.clusterSecret(), nonce, clock.wallMs());
  if (verdict === "valid") return;
  const why =
    verdict === "expired"
      ? `the challenge is older than ${NONCE_TTL_MS / 1000} s`
      : "the challenge was not made by this cluster";
  throw refuse("CHALLENGE_INVALID", `${why}; ask for a new one`);
}

/**
 * Check that the holder of a key signed this call, beside the event loop: whole machine rooms register at once. Throws
 * PROOF_INVALID.
 */
export async function checkSignature(clusterId: string, call: NodeCall, publicKey: Uint8Array): Promise<void> {
  if (await verifyProofAside(publicKey, textOf(clusterId, call), call.proof.signature)) return;
  throw proofInvalid(call.nodeId);
}

/** Check that the holder of the next key of a rotation signed the same text. Throws NEXT_KEY_PROOF_INVALID. */
export function checkNextSignature(
  clusterId: string,
  call: NodeCall,
  next: { readonly publicKey: Uint8Array; readonly signature: Uint8Array },
): void {
  if (verifyProof(next.publicKey, textOf(clusterId, call), next.signature)) return;
  const { nodeId: node } = call;
  const message = `the next key of node ${node} did not sign this call; sign the text of the proof with both keys`;
  throw refuse("NEXT_KEY_PROOF_INVALID", message, { metadata: { node } });
}

/** Check that bytes can be a public key. Throws INVALID_PUBLIC_KEY. */
export function checkPublicKey(node: string, publicKey: Uint8Array, field: string): void {
  const flaw = publicKeyFlaw(publicKey);
  if (flaw === null) return;
  const bytes = publicKey.length;
  const description = `a public key is a raw Ed25519 key of ${PUBLIC_KEY_BYTES} bytes, ${FLAWS[flaw](bytes)}`;
  throw refuse("INVALID_PUBLIC_KEY", `node ${node}: ${description}`, {
    metadata: { node, bytes: String(bytes), flaw },
    violations: [{ field, description }],
  });
}

const FLAWS: Readonly<Record<PublicKeyFlaw, (bytes: number) => string>> = {
  WRONG_LENGTH: (bytes) => `not ${bytes}`,
  NOT_CANONICAL: () => "in its canonical encoding; generate another key",
  SMALL_ORDER: () => "not a point of small order, for which anyone can sign; generate another key",
};

/** A node that makes a call, locked and proven. */
export interface LockedCaller {
  readonly node: NodeRecord;
  /** Fingerprint of the key that signed. It is the node's key now. */
  readonly used: string;
  /** To be appended by the caller: that the node used its next key for the first time. */
  readonly events: readonly NewEvent[];
}

/**
 * Lock the node that makes a call, its nonce used up and its proof checked against the keys of the record, of which the
 * next one is promoted by its first use; null when there is no such node. Throws CHALLENGE_INVALID, PROOF_INVALID, or
 * NODE_IS_ORCHESTRATOR: those have no key to prove anything with.
 */
export async function lockCaller(tx: Tx, services: RegistryServices, call: NodeCall): Promise<LockedCaller | null> {
  if (!(await useChallenge(tx, call.proof.nonce))) {
    throw refuse("CHALLENGE_INVALID", "the challenge was used before; ask for a new one");
  }
  const node = await lockNode(tx, call.nodeId);
  if (node === null) return null;
  const { id } = node;
  const keys = (await keyOf(tx, [id])).get(id);
  const { fingerprint: used } = findKey(services, call, keys);
  const current = keys?.fingerprint ?? "";
  const isFirstUse = used !== current;
  const proven = { ...node, keyFingerprint: used };
  if (!isFirstUse) return { node: proven, used, events: [] };
  const caller = { node: { ...proven, nextKeyFingerprint: null }, used };
  if (await promoteKey(tx, id, used)) {
    const event = keyRotatedEvent({ subject: id, before: current, after: used });
    return { ...caller, events: [event] };
  }
  // A Hello does not lock the node's row: it may have been the first use, since the keys were read.
  const now = (await keyOf(tx, [id])).get(id);
  if (now?.fingerprint !== used) throw proofInvalid(id);
  return { ...caller, events: [] };
}

/**
 * Find the key that signed a call among those that count. Throws PROOF_INVALID when none did, and NODE_IS_ORCHESTRATOR
 * when the node has none.
 */
export function findKey(
  { store }: Pick<RegistryServices, "store">,
  call: NodeCall,
  keys: NodeKeys | undefined,
): PublicKey {
  const { nodeId } = call;
  if (keys === undefined) {
    const message = `node ${nodeId} is a control-plane process; it does not speak for itself here`;
    throw refuse("NODE_IS_ORCHESTRATOR", message, { metadata: { node: nodeId }, subject: nodeId });
  }
  const text = textOf(store.clusterId(), call);
  const used = keysInForce(keys).find(({ publicKey }) => verifyProof(publicKey, text, call.proof.signature));
  if (used === undefined) throw proofInvalid(nodeId);
  return used;
}

/** Who could not register now, because it was rejected, is not listened to either. Throws NODE_REJECTED. */
export function checkMayReturn({ store, clock }: Pick<RegistryServices, "store" | "clock">, node: NodeRecord): void {
  const atMs = clock.wallMs();
  const subject = { ...node, alive: node.connection.state === "CONNECTED" };
  const by = { actor: `node:${node.id}`, message: "", atMs };
  const command = { kind: "register", manualApproval: true } as const;
  const decision = decideMembership(subject, node.id, command, by);
  if (!decision.ok) {
    throw refusalOfNode({ nodeId: node.id, refusal: decision.refusal }, node, { wallMs: atMs, logId: store.logId() });
  }
}

/** The error of a node that is not in the record. */
export function notRegistered(node: string): Error {
  const message = `node ${node} is not registered; call RegisterNode first`;
  return refuse("NODE_NOT_REGISTERED", message, { metadata: { node } });
}

function textOf(clusterId: string, { method, nodeId, proof }: NodeCall): string {
  const name = `/${method.parent.typeName}/${method.name}`;
  return proofText({ method: name, clusterId, nodeId, nonce: proof.nonce });
}

function proofInvalid(node: string): Error {
  const message = `the proof is not a signature of this call by the key of node ${node}; sign the text of NodeProof`;
  return refuse("PROOF_INVALID", message, { metadata: { node } });
}
