import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import {
  AgentVersionSchema,
  DuplicatedNodeSchema,
  ProcessFactsSchema,
  StandbyFactsSchema,
  StoreFactsSchema,
} from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { GetControlPlaneStatusResponseSchema, UpkeepOutcome } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { evaluateAddress, evaluateExpiry } from "./evaluate-address.ts";
import { evaluateContainment } from "./evaluate-containment.ts";
import { evaluateStatus } from "./evaluate-deliveries.ts";
import { evaluateIdentities } from "./evaluate-identities.ts";
import { evaluateProcesses, evaluateServerClock } from "./evaluate-processes.ts";
import { evaluateResources } from "./evaluate-resources.ts";
import { evaluateStore } from "./evaluate-store.ts";
import { evaluateVersions } from "./evaluate-versions.ts";
import { type Finding, worstOf } from "./finding.ts";

const DAY_MS = 86_400_000;
const shown = (findings: readonly Finding[]) =>
  findings.filter(({ status }) => status !== "ok").map(({ status, check }) => `${status} ${check}`);

describe("evaluateStore()", () => {
  const good = { version: "16.4", versionNumber: 160_004, standbysTold: true, settings: { max_connections: "100" } };
  const standby = (facts: MessageInitShape<typeof StandbyFactsSchema>) => create(StandbyFactsSchema, facts);

  it.each<[string, MessageInitShape<typeof StoreFactsSchema>, readonly string[]]>([
    ["a good one", {}, []],
    ["one that is too old", { version: "12.1", versionNumber: 120_001 }, ["problem postgres-version"]],
    ["one that is too new", { version: "21.0", versionNumber: 210_000 }, ["warning postgres-version"]],
    ["one that loses data", { settings: { fsync: "off" } }, ["problem postgres-settings"]],
    ["one that loses commits", { settings: { synchronous_commit: "off" } }, ["problem postgres-settings"]],
    ["one without vacuum", { settings: { autovacuum: "off" } }, ["warning postgres-settings"]],
    ["a standby", { standby: true }, ["problem postgres-settings"]],
    ["a slow one", { latency: durationFromMs(50) }, ["warning postgres-latency"]],
    ["a very slow one", { latency: durationFromMs(500) }, ["problem postgres-latency"]],
    ["a full one", { connections: 96 }, ["problem postgres-connections"]],
    [
      "a locked one",
      {
        waits: [
          { type: "Lock", event: "relation", statements: 3, longest: durationFromMs(9_000), heldBy: "pid 7 (x)" },
        ],
      },
      ["problem postgres-waits"],
    ],
    [
      "one whose standby is late",
      { waits: [{ type: "IPC", event: "SyncRep", statements: 1, longest: durationFromMs(2_000) }] },
      ["warning postgres-waits"],
    ],
    ["one that keeps standbys to itself", { standbysTold: false }, ["unknown replication"]],
    ["a standby that catches up", { standbys: [standby({ state: "catchup" })] }, ["warning replication"]],
    [
      "a standby that is behind",
      { standbys: [standby({ state: "streaming", behind: durationFromMs(90_000) })] },
      ["problem replication"],
    ],
  ])("should evaluate %s", (_, facts, findings) => {
    expect(shown(evaluateStore(create(StoreFactsSchema, { ...good, ...facts })))).toEqual(findings);
  });
});

describe("evaluateIdentities()", () => {
  it("should report a node whose identity two agents use, with both addresses", () => {
    expect(evaluateIdentities([])).toMatchObject([{ status: "ok" }]);
    const node = create(DuplicatedNodeSchema, { nodeId: "web-1", addresses: ["10.0.0.1:4000", "10.0.0.2:4000"] });
    expect(evaluateIdentities([node])).toMatchObject([
      { status: "problem", subject: "web-1", found: expect.stringContaining("10.0.0.1:4000 and 10.0.0.2:4000") },
    ]);
  });
});

describe("evaluateProcesses()", () => {
  it("should report the services without a reporting process", () => {
    const health = create(ProcessFactsSchema, { instance: "h-1", service: "health" });
    const missing = evaluateProcesses([health], 0).filter(({ check }) => check === "processes");
    expect(missing.map(({ subject }) => subject)).toEqual(["registry", "admin", "scheduler"]);
  });

  it("should tolerate a clock difference of half the response time", () => {
    const facts = { instance: "up-1", service: "up", clockAhead: durationFromMs(2_500) };
    expect(shown(evaluateProcesses([create(ProcessFactsSchema, facts)], 0))).toEqual(["warning clock"]);
    const slow = create(ProcessFactsSchema, { ...facts, storeLatency: durationFromMs(1_200) });
    expect(shown(evaluateProcesses([slow], 0))).toEqual(["problem store-latency"]);
  });
});

describe("evaluateServerClock()", () => {
  it.each([
    [100, 10, "ok"],
    [-5_000, 10, "warning"],
    [60_000, 10, "problem"],
    [60_000, 60_000, "ok"],
  ])("should evaluate %d ms, known to %d ms: %s", (aheadMs, uncertainMs, status) => {
    expect(evaluateServerClock(aheadMs, uncertainMs).status).toBe(status);
  });
});

describe("evaluateExpiry()", () => {
  it.each([
    [-1, "problem"],
    [2 * DAY_MS, "problem"],
    [10 * DAY_MS, "warning"],
    [60 * DAY_MS, "ok"],
  ])("should evaluate a certificate that expires in %d ms: %s", (leftMs, status) => {
    expect(evaluateExpiry("a", 1_800_000_000_000 + leftMs, 1_800_000_000_000).status).toBe(status);
  });
});

describe("evaluateVersions()", () => {
  const spread = (ours: readonly string[], agents: readonly string[]) =>
    shown(
      evaluateVersions(
        ours.map((version) => create(ProcessFactsSchema, { version })),
        agents.map((version) => create(AgentVersionSchema, { version, nodes: 1 })),
      ),
    );

  it.each([
    [["1.4.0"], ["1.4.0", "1.2.9", ""], []],
    [["1.4.0", "1.3.0"], ["1.3.0"], ["warning versions"]],
    [["1.4.0", "1.1.0"], ["1.1.0"], ["problem versions", "problem agent-versions"]],
    [["2.0.0", "1.9.0"], [], ["problem versions"]],
    [["1.4.0"], ["1.1.0"], ["problem agent-versions"]],
    [["1.4.0"], ["1.10.0"], ["warning agent-versions"]],
  ])("should evaluate processes %j with agents %j", (ours, agents, findings) => {
    expect(spread(ours, agents)).toEqual(findings);
  });
});

describe("evaluateStatus()", () => {
  it("should evaluate the relay, upkeep, and who can join", () => {
    const status = create(GetControlPlaneStatusResponseSchema, {
      relay: { configured: true, instance: "", lag: 7n },
      upkeep: [{ name: "compact-events", outcome: UpkeepOutcome.FAILED }],
      joining: { warnings: ["any machine can join"] },
    });
    expect(shown(evaluateStatus(status))).toEqual(["problem nats-relay", "problem upkeep", "warning joining"]);
    const behind = create(GetControlPlaneStatusResponseSchema, {
      relay: { configured: true, instance: "r-1", lag: 5_000n },
    });
    expect(shown(evaluateStatus(behind))).toEqual(["warning nats-relay"]);
    const slow = create(GetControlPlaneStatusResponseSchema, {
      relay: { configured: true, instance: "r-1", lag: 1n, waiting: durationFromMs(61_000) },
    });
    expect(shown(evaluateStatus(slow))).toEqual(["problem nats-relay"]);
  });
});

describe("evaluateAddress()", () => {
  const probe = { subject: "a", host: "10.0.0.1", failure: null, certificate: null, isTls: false };
  const certificate = { endsAtMs: 60 * DAY_MS, distrust: "", chain: 2 };

  it.each([
    [{ failure: "ECONNREFUSED" }, ["problem address"]],
    [{ failure: "a strange error" }, ["problem address"]],
    [{ failure: "ERR_SSL_WRONG_VERSION_NUMBER", isTls: true }, ["problem address"]],
    [{}, ["warning address"]],
    [{ host: "127.0.0.1" }, []],
    [{ isTls: true, certificate }, []],
    [{ isTls: true, certificate: { ...certificate, distrust: "CERT_HAS_EXPIRED" } }, ["problem tls-chain"]],
    [{ isTls: true, certificate: { ...certificate, distrust: "something new" } }, ["problem tls-chain"]],
    [{ isTls: true, certificate: { ...certificate, endsAtMs: DAY_MS } }, ["problem certificate"]],
  ])("should evaluate %j", (change, findings) => {
    expect(shown(evaluateAddress("address", { ...probe, ...change }, 0))).toEqual(findings);
  });
});

describe("worstOf()", () => {
  const of = (status: Finding["status"]): Finding => ({ check: "c", subject: "s", status, found: "", advice: "" });

  it("should rank a problem above a check that could not be made, and that above a warning", () => {
    expect(worstOf([])).toBe("ok");
    expect(worstOf([of("ok"), of("warning")])).toBe("warning");
    expect(worstOf([of("warning"), of("unknown")])).toBe("unknown");
    expect(worstOf([of("unknown"), of("problem"), of("ok")])).toBe("problem");
  });
});

describe("evaluateResources()", () => {
  it("should warn about each node whose agent cannot determine a resource, with the consequence", () => {
    expect(shown(evaluateResources([]))).toEqual([]);
    const nodes = [
      { nodeId: "n1", reasons: ["MEMORY_UNKNOWN", "GPUS_UNKNOWN"] },
      { nodeId: "n2", reasons: ["GPUS_UNKNOWN"] },
    ];
    const warning = { status: "warning", check: "resources" };
    const blind = "(MEMORY_UNKNOWN, GPUS_UNKNOWN): the node gets no new executions";
    expect(evaluateResources(nodes)).toMatchObject([
      { ...warning, subject: "n1", found: expect.stringContaining(blind) },
      { ...warning, subject: "n2", found: expect.stringContaining("(GPUS_UNKNOWN): new executions get no GPU") },
    ]);
  });
});

describe("evaluateContainment()", () => {
  it("should warn about nodes on which processes can outlive their execution", () => {
    expect(shown(evaluateContainment([]))).toEqual([]);
    expect(evaluateContainment(["n1"])).toMatchObject([{ status: "warning", check: "containment", subject: "n1" }]);
  });
});
