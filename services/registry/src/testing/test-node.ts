import type { DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { type RegisterNodeResponse, RegistryService } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { proofText } from "@rollcall/domain";
import { createChallenge, generateKeyPair, type NodeKeyPair, signProof } from "@rollcall/identity";
import { systemClock } from "@rollcall/process";
import type { Store } from "@rollcall/store";

type Registry = Client<typeof RegistryService>;
type InfoInit = MessageInitShape<typeof NodeInfoSchema>;

/** A machine's default report in these tests. */
export const INFO = {
  hostname: "machine",
  agentVersion: "0.1.0",
  cpu: { model: "Abacus", threads: 8 },
  memoryBytes: 2n ** 34n,
  diskBytes: 2n ** 40n,
} satisfies InfoInit;

/** A signed nonce. */
export interface Proof {
  readonly nonce: Uint8Array;
  readonly signature: Uint8Array;
}

/** A machine with its own key. */
export class TestNode {
  readonly id: string;
  readonly keyPair: NodeKeyPair;

  constructor(id: string, keyPair: NodeKeyPair = generateKeyPair()) {
    this.id = id;
    this.keyPair = keyPair;
  }

  /** Request a nonce, and sign a call with it. */
  async prove(
    registry: Registry,
    method: DescMethod = RegistryService.method.registerNode,
    nodeId = this.id,
  ): Promise<Proof> {
    const { nonce, clusterId } = await registry.createChallenge({});
    return { nonce, signature: this.sign(method, { nonce, clusterId }, nodeId) };
  }

  sign(
    method: DescMethod,
    challenge: { readonly nonce: Uint8Array; readonly clusterId: string },
    nodeId = this.id,
  ): Uint8Array {
    const name = `/${method.parent.typeName}/${method.name}`;
    return signProof(this.keyPair.privateKey, proofText({ method: name, nodeId, ...challenge }));
  }

  /** A request to join with a fresh proof. */
  async joining(registry: Registry, info: InfoInit = INFO) {
    return this.#joining(await this.prove(registry), info);
  }

  /**
   * Like joining(), with a nonce that this method creates and that every registry of this store accepts.
   */
  joiningAny(store: Store, info: InfoInit = INFO) {
    const nonce = createChallenge(store.clusterSecret(), systemClock.wallMs());
    const challenge = { nonce, clusterId: store.clusterId() };
    const signature = this.sign(RegistryService.method.registerNode, challenge);
    return this.#joining({ nonce, signature }, info);
  }

  #joining(proof: Proof, info: InfoInit) {
    return { nodeId: this.id, publicKey: this.keyPair.publicKey, proof, info };
  }

  /** Register the node, whether it joins or returns. */
  async register(registry: Registry, info: InfoInit = INFO): Promise<RegisterNodeResponse> {
    return registry.registerNode(await this.joining(registry, info));
  }
}
