import { describe, expect, it } from "@jest/globals";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";

const server = useFakeControlPlane();

describe("node summary", () => {
  it("should count nodes by state, and add up what they have", async () => {
    expect(await runAgainst(server, "node summary")).toEqual({
      code: 0,
      err: "",
      out: lines(
        "Nodes:         2 connected / 3 total",
        "Approval:      2 approved, 1 pending, 0 rejected",
        "Health:        2 healthy, 0 unhealthy, 1 unknown",
        "Scheduling:    3 eligible, 0 ineligible",
        "May take work: 2",
        "Cores:         32 available / 48 total",
        "Memory:        128 GB available / 192 GB total",
        "Disk:          1000 GB available / 1.5 TB total",
        "GPUs:          4 available / 6 total",
        "Control plane: 1 connected / 1 total",
        "Cluster:       c1",
      ),
    });
  });

  it("should print the answer as JSON", async () => {
    const { out } = await runAgainst(server, "node summary --output json");
    expect(JSON.parse(out)).toMatchObject({
      clusterId: "c1",
      mayTakeWork: 2,
      total: { cores: "48" },
    });
  });
});
