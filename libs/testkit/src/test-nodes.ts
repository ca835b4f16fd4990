import type { MembershipState, NodeType } from "@rollcall/domain";
import { getNode, insertNode, type Node, type Store, saveInfo } from "@rollcall/store";
import { saveKey } from "./save-test-state.ts";

/** The properties of a node that matter to a test. */
export interface TestNodeOptions {
  readonly type?: NodeType;
  readonly membership?: MembershipState;
  readonly labels?: Readonly<Record<string, string>>;
  readonly cores?: number;
  readonly memoryBytes?: number;
  readonly diskBytes?: number;
  readonly gpus?: number;
  /** Whether the node has a key, see `testFingerprint`. The default depends on the node's type. */
  readonly hasKey?: boolean;
}

/** Return the fingerprint of the key of a node that addNode() added. There is no private key. */
export function testFingerprint(id: string): string {
  return `SHA256:${id}`;
}

/** Add a node to the store without any event. Default: an approved compute node. */
export async function addNode(store: Store, id: string, options: TestNodeOptions = {}): Promise<Node> {
  const { type = "COMPUTE", membership: state = "APPROVED", labels = {} } = options;
  const { cores = 4, memoryBytes = 8e9, diskBytes = 1e11, gpus = 0 } = options;
  return store.transaction(async (tx) => {
    const membership = { state, sinceMs: 0, reason: "TESTED", message: "", actor: "system" };
    await insertNode(tx, { id, type, membership });
    if (options.hasKey ?? type === "COMPUTE") {
      const key = { publicKey: new Uint8Array(32), fingerprint: testFingerprint(id) };
      await saveKey(tx, { nodeId: id, ...key });
    }
    await saveInfo(tx, id, {
      info: { hostname: id },
      digest: `digest of ${id}`,
      summary: { cores, memoryBytes, diskBytes, gpus },
      agentLabels: labels,
    });
    const node = await getNode(tx, id);
    if (node === null) throw new Error(`node ${id} was not added`);
    return node;
  });
}
