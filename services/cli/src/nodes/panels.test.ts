import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import {
  GetClusterHealthResponseSchema,
  type NodeHealth,
  NodeHealthSchema,
  UsageSampleSchema,
} from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { paintNothing } from "../output/style.ts";
import { TablePrinter } from "../output/table.ts";
import { lines } from "../testing/run.ts";
import { computeNode, NOW_MS } from "../testing/sample-nodes.ts";
import { statusPanel } from "./describe.ts";
import { healthColumns } from "./health-columns.ts";
import { healthPanel } from "./health-panel.ts";
import { formatUsage } from "./summary.ts";
import { usageHistory } from "./usage.ts";

const LOOK = { paint: paintNothing, sparkWidth: 10, columns: 0 };

/** What a replica knows about n1, which was seen 2.4 s ago. */
function healthOf(changes: Partial<NodeHealth> = {}): NodeHealth {
  const health = create(NodeHealthSchema, {
    nodeId: "n1",
    health: { state: 1, reason: "HEARTBEAT" },
    lastSeenTime: timestampFromMs(NOW_MS - 2_400),
    silentFor: durationFromMs(2_400),
    heartbeatInterval: durationFromMs(15_000),
    unhealthyAfter: durationFromMs(60_000),
    unknownAfter: durationFromMs(300_000),
  });
  return Object.assign(health, changes);
}

const SAMPLES = [10, 50, 95].map((percent, at) =>
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
      numaNodes: [
        { id: 0, cpuPercent: percent, memoryUsedMib: 14_336, memoryTotalMib: at === 0 ? 32_768 : 0 },
        { id: 1, memoryUsedMib: 2_048, memoryTotalMib: at === 0 ? 32_768 : 0 },
      ],
    },
  }),
);

describe("healthPanel()", () => {
  it("should draw the last samples", () => {
    expect(healthPanel(healthOf({ samples: SAMPLES }), LOOK)).toBe(
      lines(
        "n1  healthy",
        "Contact   last seen 2s ago, heartbeat every 15s, unhealthy after 1m, unknown after 5m",
        "          heartbeat",
        "CPU              ▁▅█  95%",
        "Memory           ▃▃▃  25%  16.0 GiB of 64.0 GiB used",
        "Disk                  10%  50.0 GiB of 500 GiB used",
        "Temp               ▅  54 °C  max 61 °C",
        "GPU 0            ▇▇▇  80%  -",
        "  memory         ▅▅▅  50%  40.0 GiB of 80.0 GiB used",
        "NUMA 0           ▁▅█  95%",
        "  memory         ▄▄▄  44%  14.0 GiB of 32.0 GiB used",
        "NUMA 1                -",
        "  memory         ▁▁▁  6%  2.0 GiB of 32.0 GiB used",
      ),
    );
  });

  it("should work without samples, measures and a replica's response", () => {
    expect(healthPanel(create(NodeHealthSchema, { nodeId: "n1" }), LOOK)).toBe(
      lines("n1  -", "Contact   last seen -", "no usage reported yet"),
    );
    expect(healthPanel(healthOf({ samples: [create(UsageSampleSchema)] }), LOOK)).toMatch(/^CPU +-$/m);
    const unavailable = healthOf({ telemetryUnavailable: "replica r2 does not answer" });
    expect(healthPanel(unavailable, LOOK)).toContain("last seen and usage are missing: replica r2 does not answer\n");
  });

  it("should show how far the node's clock is off", () => {
    const textOf = (skewMs: number) => healthPanel(healthOf({ clockSkew: durationFromMs(skewMs) }), LOOK);
    expect(textOf(-90_000)).toContain("unknown after 5m, clock 1m behind\n");
    expect(textOf(90_000)).toContain("clock 1m ahead\n");
    expect(textOf(-300)).toContain("clock in sync\n");
  });
});

describe("healthColumns()", () => {
  it("should show the latest of each measure, with as many samples as fit", () => {
    const row = { health: healthOf({ samples: SAMPLES }), usage: usageHistory(healthOf({ samples: SAMPLES })) };
    const spark = " ".repeat(17);
    expect(new TablePrinter(healthColumns(20)).print([row])).toBe(
      lines(
        "ID  HEALTH   LAST SEEN  CPU                        MEMORY                     TEMP   GPU              " +
          "          GPU MEMORY  NUMA MEMORY",
        `n1  healthy  2s ago     ${spark}▁▅█ 95%   ${spark}▃▃▃ 25%   61 °C  ${spark}▇▇▇ 80%   50%         44%`,
      ),
    );
  });
});

describe("statusPanel()", () => {
  it("should show a node on one screen", () => {
    expect(statusPanel({ node: computeNode("n1"), health: healthOf(), nowMs: NOW_MS }, LOOK)).toBe(
      lines(
        "n1  Compute  can take work",
        "",
        "Approval    approved     for 3h   by the control plane  auto approved",
        "Connection  connected    for 3h   by the control plane  session opened",
        "Health      healthy      for 3h   by the control plane  heartbeat",
        "Scheduling  eligible     for 3h",
        "Contact     last seen 2s ago, heartbeat every 15s, unhealthy after 1m, unknown after 5m",
        "",
        "Host        n1.example",
        "OS          Debian GNU/Linux 12, 6.1.0-18-amd64, x64",
        "CPU         16 cores, 1 socket, AMD EPYC 9654",
        "Memory      64.0 GiB, 1 NUMA node",
        "Disk        500 GiB",
        "GPUs        2 x NVIDIA H100",
        "VMs         not capable: no /dev/kvm",
        "VFIO GPUs   0",
        "Agent       0.1.0",
        "Key         SHA256:abc",
        "Registered  2026-08-06 09:00:00Z",
        "Labels      gpu=h100  (agent)",
        "            zone=a  (agent)",
        "",
        "no usage reported yet",
      ),
    );
  });

  it("should fit a terminal", () => {
    const panel = statusPanel({ node: computeNode("n1"), health: healthOf(), nowMs: NOW_MS }, { ...LOOK, columns: 50 });
    expect(panel).toContain(
      lines("Contact     last seen 2s ago, heartbeat every 15s,", "            unhealthy after 1m, unknown after 5m"),
    );
    expect(panel).toContain(
      lines("Health      healthy      for 3h   by the control plane", `${" ".repeat(34)}heartbeat`),
    );
  });

  it("should show intervals that the agent's configuration requests, but that were not granted", () => {
    const panel = (changes: Partial<NodeHealth>) =>
      statusPanel({ node: computeNode("n1"), health: healthOf(changes), nowMs: NOW_MS }, LOOK);
    const wishes = {
      wishedHeartbeatInterval: durationFromMs(5_000),
      infoInterval: durationFromMs(60_000),
      wishedInfoInterval: durationFromMs(30_000),
    };
    expect(panel(wishes)).toContain("\nAsks for    a heartbeat every 5s (gets 15s), information every 30s (gets 1m)\n");
    expect(panel({ wishedHeartbeatInterval: durationFromMs(15_000) })).not.toContain("Asks for");
  });

  it("should show the required rotation of its key, and how it joined", () => {
    const node = computeNode("n1", {
      keySince: timestampFromMs(NOW_MS - 86_400_000),
      keyRotationRequiredSince: timestampFromMs(NOW_MS - 120_000),
      nextKeyFingerprint: "SHA256:next",
      joinTokenId: "0000000000a1",
      joinedFrom: "192.0.2.7",
      ephemeral: true,
    });
    const panel = statusPanel({ node, health: undefined, nowMs: NOW_MS }, LOOK);
    expect(panel).toContain("\nKey         SHA256:abc, for 1d, next SHA256:next, rotation required for 2m\n");
    const registered = "2026-08-06 09:00:00Z, from 192.0.2.7, with join token 0000000000a1, ephemeral";
    expect(panel).toContain(`\nRegistered  ${registered}\n`);
  });
});

describe("formatUsage()", () => {
  it("should add up what nodes report, and warn about replicas that do not answer", () => {
    const warnings: string[] = [];
    const health = create(GetClusterHealthResponseSchema, {
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
    expect(formatUsage(health, (line) => warnings.push(line))).toBe(
      lines(
        "CPU used:      37% of 32 cores, 2 nodes reporting",
        "Memory used:   64.0 GiB of 128 GiB (50%)",
        "GPUs busy:     3 of 4",
        "Hottest:       n1 61 °C on average, n2 88 °C at its hottest sensor",
      ),
    );
    expect(warnings).toEqual(["warning: usage of the nodes of health-2 is missing: no answer\n"]);
  });
});
