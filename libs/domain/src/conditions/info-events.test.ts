import { describe, expect, it } from "@jest/globals";
import { deriveScheduling } from "../states.ts";
import { hardwareOf } from "./hardware.ts";
import { nodeInfoEvents } from "./info-events.ts";

const before = {
  id: "n1",
  infoDigest: "old",
  labels: [
    { key: "zone", value: "a", tier: "agent" },
    { key: "team", value: "x", tier: "operator" },
    { key: "rack", value: "7", tier: "agent" },
  ],
  approvedHardware: hardwareOf({ cpu: { threads: 8 } }),
  missingHardware: [],
  info: {},
  holds: [],
  scheduling: deriveScheduling([], 0),
} as const;

describe("nodeInfoEvents()", () => {
  it("should append only the information's event while the effective labels stay", () => {
    // The operator's value wins over the value that the node reports.
    const agentLabels = { zone: "a", rack: "7", team: "mine" };
    expect(nodeInfoEvents(before, { digest: "new", info: {}, agentLabels })).toEqual([
      {
        type: "node.info.changed",
        subject: "n1",
        actor: "node:n1",
        reason: "AGENT_REPORTED",
        message: "",
        before: { infoDigest: "old" },
        after: { infoDigest: "new" },
      },
    ]);
  });

  it("should report which labels changed, came and went", () => {
    const agentLabels = { zone: "b", disk: "ssd" };
    const [, labels] = nodeInfoEvents(before, { digest: "new", info: {}, agentLabels });
    expect(labels).toMatchObject({
      type: "node.labels.changed",
      before: { labels: { zone: "a", rack: "7" } },
      after: { labels: { zone: "b", disk: "ssd" } },
    });
  });

  it("should report missing hardware once while it stays the same", () => {
    const report = { digest: "new", info: { cpu: { threads: 4 } }, agentLabels: {} };
    const unlabelled = { ...before, labels: [] };
    const [, degraded] = nodeInfoEvents(unlabelled, report);
    expect(degraded).toMatchObject({
      type: "node.hardware.degraded",
      actor: "node:n1",
      reason: "HARDWARE_DEGRADED",
      message: "4 of 8 cores",
    });
    const missingHardware = [{ kind: "HARDWARE_DEGRADED", part: "cores", message: "3 of 8 cores" }] as const;
    expect(nodeInfoEvents({ ...unlabelled, missingHardware }, report)).toHaveLength(1);
  });

  it("should have nothing before a first report", () => {
    const [info] = nodeInfoEvents(
      { ...before, infoDigest: null, labels: [], approvedHardware: null },
      { digest: "d", info: {}, agentLabels: {} },
    );
    expect(info?.before).toBeNull();
  });
});
