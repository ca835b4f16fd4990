import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { GetControlPlaneStatusResponseSchema, UpkeepOutcome } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { NOW_MS, orchestratorNode } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();

describe("status", () => {
  it("should show processes, the log, its relay and upkeep", async () => {
    server.add(orchestratorNode("up-host-7700"));
    const instance = "up-host-7700.1a2b3c4d";
    server.status = create(GetControlPlaneStatusResponseSchema, {
      log: { headRevision: 120n, compactedRevision: 20n },
      relay: { configured: true, instance, revision: 117n, lag: 3n },
      upkeep: [
        {
          ...{ name: "compact-events", instance, outcome: UpkeepOutcome.SUCCEEDED },
          ...{ rows: 20n, runs: 7n },
          startTime: timestampFromMs(NOW_MS - 125_000),
          endTime: timestampFromMs(NOW_MS - 124_750),
        },
        {
          ...{ name: "prune-tombstones", instance, outcome: UpkeepOutcome.RUNNING, runs: 1n },
          startTime: timestampFromMs(NOW_MS - 1_000),
        },
      ],
    });
    const { out, code } = await runAgainst(server, "status");
    expect(code).toBe(0);
    expect(out).toContain("Nodes:         2 connected / 3 total\n");
    expect(out.slice(out.indexOf("\n\n") + 2)).toBe(
      lines(
        "Log:           at revision 120, kept from revision 21",
        "Relay to NATS: 3 revisions behind, at 117, by up-host-7700.1a2b3c4d",
        "",
        "PROCESS       STATUS     FOR  VERSION",
        "up-host-7700  CONNECTED  3h   -",
        "",
        "UPKEEP            OUTCOME    LAST RUN  TOOK   ROWS  RUNS  BY",
        "compact-events    SUCCEEDED  2m ago    250ms  20    7     up-host-7700.1a2b3c4d",
        "prune-tombstones  RUNNING    1s ago    -      0     1     up-host-7700.1a2b3c4d",
      ),
    );
  });

  it.each([
    [false, "not configured"],
    [true, "5 revisions behind, at 1, no process relays: NATS cannot be reached"],
  ])("should tell why nothing is relayed, with configured %s", async (configured, text) => {
    server.status = create(GetControlPlaneStatusResponseSchema, {
      relay: { configured, revision: 1n, lag: 5n },
    });
    const { out } = await runAgainst(server, "status");
    expect(out).toContain("Log:           at revision 0, whole\n");
    expect(out).toContain(`Relay to NATS: ${text}\n`);
  });

  it("should print everything as JSON", async () => {
    server.add(orchestratorNode("up-host-7700"));
    const { out } = await runAgainst(server, "status --output json");
    expect(JSON.parse(out)).toMatchObject({
      summary: { clusterId: "c1" },
      processes: [{ id: "up-host-7700" }],
      status: { clusterId: "", upkeep: [] },
    });
  });
});
