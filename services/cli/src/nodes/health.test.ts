import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { NodeHealthSchema, UsageSampleSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { computeNode } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();

function beating(id: string): void {
  server.add(computeNode(id));
  const samples = [10, 50, 95].map((percent, at) =>
    create(UsageSampleSchema, {
      usage: {
        cpuPercent: percent,
        memoryUsedMib: 16_384,
        // Totals are sent once, and again only when they change.
        memoryTotalMib: at === 0 ? 65_536 : 0,
        diskUsedMib: 51_200,
        diskTotalMib: at === 0 ? 512_000 : 0,
        ...(at === 2 ? { temperatureAverageCelsius: 54, temperatureMaxCelsius: 61.4 } : {}),
        gpus: [{ index: 0, utilizationPercent: 80, memoryUsedMib: 40_960, memoryTotalMib: 81_920 }],
      },
    }),
  );
  const latest = samples.at(-1);
  server.beat(id, 2400, { samples, ...(latest === undefined ? {} : { latest }) });
}

describe("node health", () => {
  it("should draw the last samples of one node", async () => {
    beating("n1");
    const terminal = { columns: 55, rows: 24 };
    const { code, out } = await runAgainst(server, "node health n1 --no-color", { terminal });
    expect(code).toBe(0);
    expect(out).toBe(
      lines(
        "n1  HEALTHY  last seen 2s ago, heartbeat every 15s, unhealthy after 1m, unknown after 5m",
        "          HEARTBEAT",
        "CPU              ▁▅█  95%",
        "Memory           ▃▃▃  25%  16.0 GiB / 64.0 GiB",
        "Disk                  10%  50.0 GiB / 500 GiB",
        "Temp               ▅  54 °C  max 61 °C",
        "GPU 0            ▇▇▇  80%  -",
        "  memory         ▅▅▅  50%  40.0 GiB / 80.0 GiB",
      ),
    );
  });

  it("should list all nodes that are held", async () => {
    beating("n1");
    beating("n2");
    const { out } = await runAgainst(server, "node health");
    const spark = " ".repeat(17);
    expect(out).toBe(
      lines(
        "ID  HEALTH   LAST SEEN  CPU                        MEMORY                     TEMP   GPU                        GPU MEMORY",
        `n1  HEALTHY  2s ago     ${spark}▁▅█ 95%   ${spark}▃▃▃ 25%   61 °C  ${spark}▇▇▇ 80%   50%`,
        `n2  HEALTHY  2s ago     ${spark}▁▅█ 95%   ${spark}▃▃▃ 25%   61 °C  ${spark}▇▇▇ 80%   50%`,
      ),
    );
  });

  it("should print the latest sample as CSV, and everything as JSON", async () => {
    beating("n1");
    expect((await runAgainst(server, "node health --output csv")).out).toBe(
      "id,health,last_seen,cpu_percent,memory_percent,temperature_celsius,gpu_percent,gpu_memory_percent\r\n" +
        "n1,HEALTHY,2026-08-06T11:59:57.600Z,95.0,25.0,61.4,80.0,50.0\r\n",
    );
    const all = JSON.parse((await runAgainst(server, "node health --output json")).out);
    expect(all.nodes[0].samples).toHaveLength(3);
    const one = JSON.parse((await runAgainst(server, "node health n1 --output json")).out);
    expect(one.nodeHealth.nodeId).toBe("n1");
  });

  it("should not fail on a node that has told nothing yet", async () => {
    server.add(computeNode("n1"), computeNode("n2"));
    server.beat("n2", 500);
    expect((await runAgainst(server, "node health n1")).out).toBe(lines("n1  -  last seen -", "no usage reported yet"));
    expect((await runAgainst(server, "node health --hide-header")).out).toBe("n2  HEALTHY  0s ago  -  -  -  -  -\n");
  });

  it("should not fail on a sample that lacks every measure", async () => {
    server.add(computeNode("n1"));
    server.beat("n1", 500, { samples: [create(UsageSampleSchema, {})] });
    const { code, out } = await runAgainst(server, "node health n1");
    expect(code).toBe(0);
    expect(out).toMatch(/^CPU +-$/m);
  });

  it("should say why usage is missing, and how far the clock is off", async () => {
    server.add(computeNode("n1"));
    server.beat("n1", 2400, { clockSkew: durationFromMs(-90_000) });
    expect((await runAgainst(server, "node health n1")).out).toContain("unknown after 5m, clock 1m behind\n");
    server.health.set(
      "n1",
      create(NodeHealthSchema, {
        nodeId: "n1",
        telemetryUnavailable: "replica r2 does not answer",
      }),
    );
    expect((await runAgainst(server, "node health n1")).out).toContain(
      "last seen and usage are missing: replica r2 does not answer\n",
    );
    expect((await runAgainst(server, "node list")).err).toBe(
      "warning: last seen and usage of node n1 are missing: replica r2 does not answer\n",
    );
  });

  it("should redraw one node as it is heard of, and go on when the control plane is back", async () => {
    beating("n1");
    const heard = (cpuPercent: number) => ({
      nodes: [{ nodeId: "n1", latest: { usage: { cpuPercent } } }],
    });
    server.watchAnswers = [heard(10), heard(90)];
    const ctrlC = new AbortController();
    const { code, out } = await runAgainst(server, "node health n1 --follow --no-color", {
      interrupted: ctrlC.signal,
      onOutput: (all) => {
        // It has come back once.
        if (all.split("90%").length > 2) ctrlC.abort();
      },
    });
    expect(code).toBe(130);
    expect(out).toMatch(/CPU +▁ {2}10%/);
    expect(out).toMatch(/CPU +▁█ {2}90%/);
    expect(out).toContain("the service is ending");
  });

  it("should follow one node, for people", async () => {
    expect((await runAgainst(server, "node health --follow")).code).toBe(2);
    expect((await runAgainst(server, "node health n1 --follow --output json")).code).toBe(2);
  });
});
