import { NO_LOSS } from "../brake/reaction.ts";
import type { Node } from "../nodes/node.ts";
import { deriveScheduling } from "../states.ts";

const BY = { sinceMs: 0, reason: "TESTED", message: "", actor: "system" } as const;

/**
 * Create a node in the form in which the store returns it. Without changes, it is an
 * approved compute node that is CONNECTED and HEALTHY.
 */
export function nodeRecord(changes: Partial<Node> = {}): Node {
  const recorded = changes.detectedHealth ?? { ...BY, state: "HEALTHY" };
  const holds = changes.holds ?? [];
  return {
    id: "n",
    type: "COMPUTE",
    membership: { ...BY, state: "APPROVED" },
    connection: { ...BY, state: "CONNECTED" },
    health: recorded,
    detectedHealth: recorded,
    mark: null,
    holds,
    disturbedAtMs: null,
    scheduling: deriveScheduling(holds, 0),
    info: null,
    infoDigest: null,
    summary: { cores: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 },
    labels: [],
    keyFingerprint: "SHA256:n",
    keySinceMs: 0,
    nextKeyFingerprint: null,
    keyRotationRequiredSinceMs: null,
    joining: { tokenId: null, ephemeral: false, withoutToken: false, from: null },
    etag: "etag-1",
    createdAtMs: 0,
    updatedAtMs: 0,
    approvedHardware: null,
    missingHardware: [],
    gpuTroubles: [],
    history: { outages: [], flappingSinceMs: null },
    rebootedAtMs: null,
    suspectedReboot: null,
    duplicate: null,
    loss: NO_LOSS,
    session: { epoch: 1, replicaId: "r", address: null },
    ...changes,
  };
}
