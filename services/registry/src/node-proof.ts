import type { DescMethod } from "@bufbuild/protobuf";
import type { NodeProof } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { isNodeId, proofText } from "@rollcall/domain";
import { checkChallenge, NONCE_TTL_MS, refuse, verifyProof } from "@rollcall/runtime";
import { keyOf, lockNode, type NodeRecord, type Tx, useChallenge } from "@rollcall/store";
import type { Deps } from "./deps.ts";

/** A call by which a node speaks for itself. */
export interface NodeCall {
  readonly method: DescMethod;
  readonly nodeId: string;
  readonly proof: NodeProof;
}

/** Check that an id can be a node's. Throws INVALID_NODE_ID. */
export function checkNodeId(nodeId: string): void {
  if (isNodeId(nodeId)) return;
  const description = "a node id is 1-63 characters of [A-Za-z0-9._-], the first a letter or digit";
  throw refuse("INVALID_NODE_ID", `"${nodeId}" is no node id: ${description}`, {
    metadata: { node: nodeId },
    violations: [{ field: "node_id", description }],
  });
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
export function checkNonce(
  { store, clock }: Pick<Deps, "store" | "clock">,
  nonce: Uint8Array,
): void {
  const verdict = checkChallenge(store.clusterSecret(), nonce, clock.wallMs());
  if (verdict === "valid") return;
  const why =
    verdict === "expired"
      ? `the challenge is older than ${NONCE_TTL_MS / 1000} s`
      : "the challenge was not made by this cluster";
  throw refuse("CHALLENGE_INVALID", `${why}; ask for a new one`);
}

/** Check that the holder of a key signed this call. Throws PROOF_INVALID. */
export function checkSignature(clusterId: string, call: NodeCall, publicKey: Uint8Array): void {
  const { method, nodeId, proof } = call;
  const text = proofText({
    method: `/${method.parent.typeName}/${method.name}`,
    clusterId,
    nodeId,
    nonce: proof.nonce,
  });
  if (verifyProof(publicKey, text, proof.signature)) return;
  const message = `the proof is no signature of this call by the key of node ${nodeId}; sign the text that NodeProof describes`;
  throw refuse("PROOF_INVALID", message, { metadata: { node: nodeId } });
}

/**
 * Lock the node that makes a call, its nonce used up and its proof checked against the key of the record; null when there is no such
 * node. Throws CHALLENGE_INVALID, PROOF_INVALID, or NODE_IS_ORCHESTRATOR: those have no key to prove anything with.
 */
export async function lockCaller(tx: Tx, deps: Deps, call: NodeCall): Promise<NodeRecord | null> {
  if (!(await useChallenge(tx, call.proof.nonce))) {
    throw refuse("CHALLENGE_INVALID", "the challenge was used before; ask for a new one");
  }
  const node = await lockNode(tx, call.nodeId);
  if (node === null) return null;
  const key = (await keyOf(tx, [node.id])).get(node.id);
  if (key === undefined) {
    const message = `node ${node.id} is an orchestrator; it does not speak for itself here`;
    throw refuse("NODE_IS_ORCHESTRATOR", message, {
      metadata: { node: node.id },
      subject: node.id,
    });
  }
  checkSignature(deps.store.clusterId(), call, key.publicKey);
  return node;
}
