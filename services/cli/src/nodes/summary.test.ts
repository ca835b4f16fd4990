import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { GetClusterHealthResponseSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
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
        "Memory:        128 GiB available / 192 GiB total",
        "Disk:          1000 GiB available / 1.5 TiB total",
        "GPUs:          4 available / 6 total",
        "Control plane: 1 connected / 1 total",
        "Cluster:       c1",
      ),
    });
  });

  it("should add what the fleet is doing when health tells it", async () => {
    server.clusterHealth = create(GetClusterHealthResponseSchema, {
      healthy: 2,
      reporting: 2,
      cpuPercent: 37.4,
      cores: 32n,
      memoryUsedMib: 65_536n,
      memoryTotalMib: 131_072n,
      gpus: 4,
      gpusBusy: 3,
      hottestAverage: { nodeId: "n1", celsius: 61.4 },
      hottestSensor: { nodeId: "n2", celsius: 88 },
      missingReplicaIds: ["health-2"],
    });
    const { code, out, err } = await runAgainst(server, "node summary");
    expect(code).toBe(0);
    expect(out).toContain(
      lines(
        "Cluster:       c1",
        "CPU in use:    37% of 32 cores, 2 nodes reporting",
        "Memory in use: 64.0 GiB / 128 GiB (50%)",
        "GPUs in use:   3 / 4",
        "Hottest:       n1 61 °C on average, n2 88 °C at its hottest sensor",
      ),
    );
    expect(err).toBe("warning: usage of the nodes of health-2 is missing: no answer\n");
  });

  it("should do without health", async () => {
    server.healthAway = true;
    const { code, out, err } = await runAgainst(server, "node summary");
    expect(code).toBe(0);
    expect(out).toMatch(/Cluster: +c1\n$/);
    expect(err).toMatch(/^warning: usage is missing: /);
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
