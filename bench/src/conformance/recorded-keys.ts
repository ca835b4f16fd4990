import { createHash } from "node:crypto";
import { HealthService } from "@rollcall/api/rollcall/health/v1/health_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type NodeIdentity, proofText } from "@rollcall/domain";
import { verifyProof } from "@rollcall/identity";

/** The cluster id of the scripted control plane. */
export const CLUSTER_ID = "cluster-conformance";

/** The proof that a caller holds a key. */
interface Proof {
  readonly nonce?: Uint8Array | undefined;
  readonly signature?: Uint8Array | undefined;
}

/** Records the keys of the nodes that registered, and the nonces that were issued. */
export class RecordedKeys {
  readonly identities = new Map<string, { identity: NodeIdentity; readonly keys: Map<string, Uint8Array> }>();
  readonly #broken: (rule: string) => void;
  readonly #nonces = new Set<string>();
  #count = 0;

  /** @param broken called for each broken rule, with its description. */
  constructor(broken: (rule: string) => void) {
    this.#broken = broken;
  }

  /** Return a nonce that this method has never returned before. */
  nonce(): Uint8Array {
    this.#count += 1;
    return createHash("sha256").update(`nonce ${this.#count}`).digest();
  }

  /** Record that this nonce was issued for one call. */
  offer(nonce: Uint8Array): void {
    this.#nonces.add(Buffer.from(nonce).toString("hex"));
  }

  /** Mark a nonce as used. It is a broken rule if the nonce was not issued or was used before. */
  spend(nonce: Uint8Array = new Uint8Array()): void {
    if (!this.#nonces.delete(Buffer.from(nonce).toString("hex")))
      this.#broken("a nonce was used twice, or was never issued");
  }

  /** Find the fingerprint of the node's key that made the proof. Returns null if no key of the node did. */
  signer(nodeId: string, method: string, proof?: Proof): string | null {
    const keys = this.identities.get(nodeId)?.keys ?? new Map<string, Uint8Array>();
    for (const [fingerprint, key] of keys) if (isProof(key, method, nodeId, proof)) return fingerprint;
    return null;
  }

  /** Check that a proof was made with a key. */
  check(key: Uint8Array, method: string, nodeId: string, proof?: Proof): void {
    if (!isProof(key, method, nodeId, proof)) this.#broken(`the proof of ${method} was not made with the node's key`);
  }
}

function isProof(key: Uint8Array, name: string, nodeId: string, proof: Proof = {}): boolean {
  const { nonce = new Uint8Array(), signature = new Uint8Array() } = proof;
  const service = name === HealthService.method.heartbeat.name ? HealthService : RegistryService;
  const method = `/${service.typeName}/${name}`;
  return verifyProof(key, proofText({ method, clusterId: CLUSTER_ID, nodeId, nonce }), signature);
}
