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

/** What a machine says about itself in these tests, unless it says something else. */
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

/** A machine with a key of its own. */
export class TestNode {
  readonly id: string;
  readonly keyPair: NodeKeyPair;

  constructor(id: string, keyPair: NodeKeyPair = generateKeyPair()) {
    this.id = id;
    this.keyPair = keyPair;
  }

  /** Ask for a nonce and sign a call with it. */
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

  /** A request to join, with a fresh proof. */
  async joining(registry: Registry, info: InfoInit = INFO) {
    return this.#joining(await this.prove(registry), info);
  }

  /** The same, the nonce made here as any registry of this store makes them. */
  joiningAny(store: Store, info: InfoInit = INFO) {
    const nonce = createChallenge(store.clusterSecret(), systemClock.wallMs());
    const challenge = { nonce, clusterId: store.clusterId() };
    const signature = this.sign(RegistryService.method.registerNode, challenge);
    return this.#joining({ nonce, signature }, info);
  }

  #joining(proof: Proof, info: InfoInit) {
    return { nodeId: this.id, publicKey: this.keyPair.publicKey, proof, info };
  }

  /** Join, or return. */
  async register(registry: Registry, info: InfoInit = INFO): Promise<RegisterNodeResponse> {
    return registry.registerNode(await this.joining(registry, info));
  }
}
