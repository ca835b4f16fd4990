import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { createChallenge, keyFingerprint } from "@rollcall/identity";
import { createMetrics, silentLogger, systemClock } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import { nodeInfoToRow } from "@rollcall/wire";
import { REGISTRY_KEYS, type RegistryConfig } from "../config.ts";
import { registerBatch } from "../registration/register-batch.ts";
import { INFO, type TestNode } from "./test-node.ts";

export interface SeedOptions {
  readonly manualApproval?: boolean;
  /** The report of each node. */
  readonly infoOf?: (node: TestNode, index: number) => MessageInitShape<typeof NodeInfoSchema>;
}

/** A configuration with the default of every key. */
export const DEFAULT_CONFIG = Object.fromEntries(
  Object.entries(REGISTRY_KEYS).map(([path, key]) => [path, key.default]),
) as RegistryConfig;

/** Register many nodes at once, as the registry does in one batch. */
export async function seed(
  store: Store,
  nodes: readonly TestNode[],
  { manualApproval = false, infoOf = () => INFO }: SeedOptions = {},
): Promise<void> {
  const config = {
    ...DEFAULT_CONFIG,
    "Orchestrator.NodeManager.ManualApproval": manualApproval,
    "Registry.RegistrationQueue": nodes.length,
  };
  const metrics = createMetrics({ defaults: false });
  const services = { store, instance: "seed", config, metrics, clock: systemClock, log: silentLogger };
  const batch = nodes.map((node, index) => ({
    nodeId: node.id,
    publicKey: node.keyPair.publicKey,
    fingerprint: keyFingerprint(node.keyPair.publicKey),
    nonce: createChallenge(store.clusterSecret(), systemClock.wallMs()),
    report: nodeInfoToRow(create(NodeInfoSchema, infoOf(node, index))),
    joinToken: null,
    from: null,
    call: { actor: `node:${node.id}`, method: "test/Seed", address: "", requestId: "" },
  }));
  const answers = await registerBatch(services, batch);
  const refused = answers.find(({ ok }) => !ok);
  if (refused !== undefined && !refused.ok) throw refused.error;
}
