import { describe, expect, it } from "@jest/globals";
import { nodeInfoEvents } from "./info-events.ts";

const before = {
  id: "n1",
  infoDigest: "old",
  labels: [
    { key: "zone", value: "a", tier: "agent" },
    { key: "team", value: "x", tier: "operator" },
    { key: "rack", value: "7", tier: "agent" },
  ],
} as const;

describe("nodeInfoEvents()", () => {
  it("should tell of the information alone while the labels in effect stay", () => {
    // The operator's value wins whatever the node says.
    const agentLabels = { zone: "a", rack: "7", team: "mine" };
    expect(nodeInfoEvents(before, { digest: "new", agentLabels })).toEqual([
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

  it("should tell which labels changed, came and went", () => {
    const agentLabels = { zone: "b", disk: "ssd" };
    const [, labels] = nodeInfoEvents(before, { digest: "new", agentLabels });
    expect(labels).toMatchObject({
      type: "node.labels.changed",
      before: { labels: { zone: "a", rack: "7" } },
      after: { labels: { zone: "b", disk: "ssd" } },
    });
  });

  it("should have nothing before a first report", () => {
    const [info] = nodeInfoEvents(
      { id: "n1", infoDigest: null, labels: [] },
      { digest: "d", agentLabels: {} },
    );
    expect(info?.before).toBeNull();
  });
});
