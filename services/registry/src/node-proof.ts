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
  type Node,
  type NodeKeys,
  type PublicKey,
  promoteKey,
  type Tx,
  useChallenge,
} from "@rollcall/store";
import { refusalOfNode } from "./registration/registration.ts";
import type { RegistryServices } from "./registry-services.ts";

/** A call that a node makes about itself. */
export interface NodeCall {
  readonly method: DescMethod;
  readonly nodeId: string;
  readonly proof: NodeProof;
}

/** Check that an id is a valid node id. Throws INVALID_NODE_ID. */
export function requireNodeId(nodeId: string): void {
  const invalid = checkNodeId(nodeId, "node_id");
  if (invalid !== null) throw refuse(invalid.reason, invalid.message, invalid);
}

/** The value of a required field. Throws INVALID_REQUEST if it is missing. */
export function required<T>(value: T | undefined, field: string): T {
  if (value !== undefined) return value;
  const description = "value is required";
  throw refuse("INVALID_REQUEST", `${field}: ${description}`, {
    violations: [{ field, description }],
  });
}

/** Check that this cluster recently created a nonce. Throws CHALLENGE_INVALID. */
export function checkNonce({ store, clock }: Pick<RegistryServices, "store" | "clock">, nonce: Uint8Array): void {
  const decision = checkChallenge(store.clusterSecret(), nonce, clock.wallMs());
  if (decision === "valid") return;
  const why =
    decision === "expired"
      ? `the challenge is older than ${NONCE_TTL_MS / 1000} s`
      : "the challenge was not created by this cluster";
  throw refuse("CHALLENGE_INVALID", `${why}; ask for a new one`);
}

/**
 * Check that the holder of a key signed this call. The check runs off the event loop, because whole machine rooms
 * register at once. Throws PROOF_INVALID.
 */
export async function checkSignature(clusterId: string, call: NodeCall, publicKey: Uint8Array): Promise<void> {
  if (await verifyProofAside(publicKey, textOf(clusterId, call), call.proof.signature)) return;
  throw proofInvalid(call.nodeId);
}

/** Check that the holder of a rotation's next key also signed the call. Throws NEXT_KEY_PROOF_INVALID. */
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

/** Check that bytes are a valid public key. Throws INVALID_PUBLIC_KEY. */
export function checkPublicKey(node: string, publicKey: Uint8Array, field: string): void {
  const flaw = publicKeyFlaw(publicKey);
  if (flaw === null) return;
  const bytes = publicKey.length;
  const description = `the public key must be a raw Ed25519 key of ${PUBLIC_KEY_BYTES} bytes, ${FLAWS[flaw](bytes)}`;
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

/** The node that makes a call, locked and authenticated. */
export interface LockedCaller {
  readonly node: Node;
  /** The fingerprint of the key that signed the call, which is now the node's key. */
  readonly used: string;
  /**
   * The event of the key rotation if the node has just used its next key for the first time. The caller must append
   * it.
   */
  readonly events: readonly NewEvent[];
}

/**
 * Lock the node that makes a call, use up its nonce, and check its proof against the stored keys. The first use of the
 * next key promotes it. Returns null when the node does not exist. Throws CHALLENGE_INVALID, PROOF_INVALID, or
 * NODE_IS_ORCHESTRATOR, because orchestrators have no key.
 */
export async function lockCaller(tx: Tx, services: RegistryServices, call: NodeCall): Promise<LockedCaller | null> {
  if (!(await useChallenge(tx, call.proof.nonce))) {
    throw refuse("CHALLENGE_INVALID", "the challenge was already used; request a new one");
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
  // Read the key again. A Hello does not lock the node's row, and may have used the next key after the keys were read.
  const now = (await keyOf(tx, [id])).get(id);
  if (now?.fingerprint !== used) throw proofInvalid(id);
  return { ...caller, events: [] };
}

/**
 * Find which of the node's valid keys signed a call. Throws PROOF_INVALID when none did, and NODE_IS_ORCHESTRATOR when
 * the node has no key.
 */
export function findKey(
  { store }: Pick<RegistryServices, "store">,
  call: NodeCall,
  keys: NodeKeys | undefined,
): PublicKey {
  const { nodeId } = call;
  if (keys === undefined) {
    const message = `node ${nodeId} is a control-plane process, which cannot make this call`;
    throw refuse("NODE_IS_ORCHESTRATOR", message, { metadata: { node: nodeId }, subject: nodeId });
  }
  const text = textOf(store.clusterId(), call);
  const used = keysInForce(keys).find(({ publicKey }) => verifyProof(publicKey, text, call.proof.signature));
  if (used === undefined) throw proofInvalid(nodeId);
  return used;
}

/**
 * Check that the node could register now. A rejected node that could not register cannot make other calls either.
 * Throws NODE_REJECTED.
 */
export function checkMayReturn({ store, clock }: Pick<RegistryServices, "store" | "clock">, node: Node): void {
  const atMs = clock.wallMs();
  const subject = { ...node, alive: node.connection.state === "CONNECTED" };
  const by = { actor: `node:${node.id}`, message: "", atMs };
  const command = { kind: "register", manualApproval: true } as const;
  const decision = decideMembership(subject, node.id, command, by);
  if (!decision.ok) {
    throw refusalOfNode({ nodeId: node.id, refusal: decision.refusal }, node, { wallMs: atMs, logId: store.logId() });
  }
}

/** The error for an unknown node. */
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
