import { describe, expect, it } from "@jest/globals";
import { NO_LOSS } from "../brake/reaction.ts";
import { nodeRecord } from "../testing/node.ts";
import { NO_OVERCOMMIT, toWorkNode } from "./node-work.ts";

describe("toWorkNode()", () => {
  it("should read what placement has to know", () => {
    const node = nodeRecord({
      disturbedAtMs: 1_000,
      loss: { ...NO_LOSS, reaction: "ALLOWED" },
      labels: [
        { key: "zone", value: "a", tier: "agent" },
        { key: "zone", value: "b", tier: "operator" },
        { key: "disk", value: "ssd", tier: "agent" },
      ],
      info: {
        agentVersion: "0.2.0",
        os: { family: "linux", architecture: "x64" },
        unknownFacts: [{ fact: "numa_nodes" }, { fact: "disk_bytes", reason: "gone" }, { fact: "disk_bytes" }],
        gpus: [{ index: 1, uuid: "u", name: "NVIDIA H100" }, { name: "without UUID" }, { uuid: "m", unusable: "MIG" }],
        work: {
          executors: ["process"],
          millicores: 4_000,
          memoryBytes: "8000",
          portMin: 1,
          portMax: 9,
          users: ["web"],
          lacks: ["checks"],
          secrets: [{ name: "password", grants: ["token:ci/web"] }],
        },
      },
    });
    expect(toWorkNode(node, { cores: 1.5, memory: 1, disk: 1 })).toEqual({
      ...{ id: "n", type: "COMPUTE", membership: "APPROVED", connection: "CONNECTED", health: "HEALTHY", holds: [] },
      conditionSinceMs: null,
      disturbedUntilMs: 601_000,
      reactionAllowed: true,
      labels: new Map([
        ["disk", "ssd"],
        ["zone", "b"],
      ]),
      grantedLabels: new Map([["zone", "b"]]),
      ...{ os: "linux", architecture: "x64", agentVersion: "0.2.0" },
      capacity: {
        ...{ executors: ["process"], millicores: 6_000, memoryBytes: 8_000, diskBytes: 0, portMin: 1, portMax: 9 },
        ...{ limits: [], users: ["web"], directories: [], lacks: ["checks"] },
        secrets: [{ name: "password", grants: ["token:ci/web"] }],
      },
      gpus: [{ index: 1, uuid: "u", model: "nvidia h100" }],
      unknown: ["disk"],
    });
  });

  it("should see that a node takes no work", () => {
    expect(toWorkNode(nodeRecord({ info: { agentVersion: "0.1.0" } }), NO_OVERCOMMIT).capacity).toBeNull();
    expect(toWorkNode(nodeRecord(), NO_OVERCOMMIT)).toMatchObject({ capacity: null, os: "", gpus: [] });
  });
});
