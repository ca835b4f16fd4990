import { createHash } from "node:crypto";
import { HealthService } from "@rollcall/api/rollcall/health/v1/health_pb";
import { RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type NodeIdentity, proofText } from "@rollcall/domain";
import { verifyProof } from "@rollcall/identity";

/** The cluster that the scripted control plane is. */
export const CLUSTER_ID = "cluster-conformance";

/** What shows that a caller holds a key. */
interface Proof {
  readonly nonce?: Uint8Array | undefined;
  readonly signature?: Uint8Array | undefined;
}

/** The keys of the nodes that registered, and the nonces that were given out. */
export class KnownKeys {
  readonly identities = new Map<string, { identity: NodeIdentity; readonly keys: Map<string, Uint8Array> }>();
  readonly #broken: (rule: string) => void;
  readonly #nonces = new Set<string>();
  #count = 0;

  /** @param broken called with each rule that is broken. */
  constructor(broken: (rule: string) => void) {
    this.#broken = broken;
  }

  /** A nonce that was not there before. */
  nonce(): Uint8Array {
    this.#count += 1;
    return createHash("sha256").update(`nonce ${this.#count}`).digest();
  }

  /** A nonce is given out, for one call. */
  offer(nonce: Uint8Array): void {
    this.#nonces.add(Buffer.from(nonce).toString("hex"));
  }

  /** A nonce is used. */
  spend(nonce: Uint8Array = new Uint8Array()): void {
    if (!this.#nonces.delete(Buffer.from(nonce).toString("hex"))) this.#broken("a nonce was used twice, or is none");
  }

  /** The key of the node that signed; null for none of them. */
  signer(nodeId: string, method: string, proof?: Proof): string | null {
    const keys = this.identities.get(nodeId)?.keys ?? new Map<string, Uint8Array>();
    for (const [fingerprint, key] of keys) if (isProof(key, method, nodeId, proof)) return fingerprint;
    return null;
  }

  /** A proof must be that of a key. */
  check(key: Uint8Array, method: string, nodeId: string, proof?: Proof): void {
    if (!isProof(key, method, nodeId, proof)) this.#broken(`the proof of ${method} is not the key's`);
  }
}

function isProof(key: Uint8Array, name: string, nodeId: string, proof: Proof = {}): boolean {
  const { nonce = new Uint8Array(), signature = new Uint8Array() } = proof;
  const service = name === HealthService.method.heartbeat.name ? HealthService : RegistryService;
  const method = `/${service.typeName}/${name}`;
  return verifyProof(key, proofText({ method, clusterId: CLUSTER_ID, nodeId, nonce }), signature);
}
