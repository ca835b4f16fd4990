import { NO_LOSS } from "../brake/reaction.ts";
import type { NodeRecord } from "../nodes/node-record.ts";
import { deriveScheduling } from "../states.ts";

const BY = { sinceMs: 0, reason: "TESTED", message: "", actor: "system" } as const;

/** A node as the record has it: an approved compute node, connected and HEALTHY, unless told otherwise. */
export function nodeRecord(changes: Partial<NodeRecord> = {}): NodeRecord {
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
