import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import {
  AgentVersionSchema,
  DuplicatedNodeSchema,
  ProcessFactsSchema,
  RecordFactsSchema,
  StandbyFactsSchema,
} from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { GetControlPlaneStatusResponseSchema, UpkeepOutcome } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { type Finding, worstOf } from "./finding.ts";
import { judgeAddress, judgeExpiry } from "./judge-address.ts";
import { judgeContainment } from "./judge-containment.ts";
import { judgeStatus } from "./judge-deliveries.ts";
import { judgeIdentities } from "./judge-identities.ts";
import { judgeProcesses, judgeServerClock } from "./judge-processes.ts";
import { judgeRecord } from "./judge-record.ts";
import { judgeVersions } from "./judge-versions.ts";

const DAY_MS = 86_400_000;
const shown = (findings: readonly Finding[]) =>
  findings.filter(({ verdict }) => verdict !== "ok").map(({ verdict, check }) => `${verdict} ${check}`);

describe("judgeRecord()", () => {
  const good = { version: "16.4", versionNumber: 160_004, standbysTold: true, settings: { max_connections: "100" } };
  const standby = (facts: MessageInitShape<typeof StandbyFactsSchema>) => create(StandbyFactsSchema, facts);

  it.each<[string, MessageInitShape<typeof RecordFactsSchema>, readonly string[]]>([
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
  ])("should judge %s", (_, facts, findings) => {
    expect(shown(judgeRecord(create(RecordFactsSchema, { ...good, ...facts })))).toEqual(findings);
  });
});

describe("judgeIdentities()", () => {
  it("should report a node whose identity two agents use, with both addresses", () => {
    expect(judgeIdentities([])).toMatchObject([{ verdict: "ok" }]);
    const node = create(DuplicatedNodeSchema, { nodeId: "web-1", addresses: ["10.0.0.1:4000", "10.0.0.2:4000"] });
    expect(judgeIdentities([node])).toMatchObject([
      { verdict: "problem", subject: "web-1", found: expect.stringContaining("10.0.0.1:4000 and 10.0.0.2:4000") },
    ]);
  });
});

describe("judgeProcesses()", () => {
  it("should miss the services of which no process reports", () => {
    const health = create(ProcessFactsSchema, { instance: "h-1", service: "health" });
    const missing = judgeProcesses([health], 0).filter(({ check }) => check === "processes");
    expect(missing.map(({ subject }) => subject)).toEqual(["registry", "admin", "scheduler"]);
  });

  it("should grant a clock half of the time that the answer took", () => {
    const facts = { instance: "up-1", service: "up", clockAhead: durationFromMs(2_500) };
    expect(shown(judgeProcesses([create(ProcessFactsSchema, facts)], 0))).toEqual(["warning clock"]);
    const slow = create(ProcessFactsSchema, { ...facts, recordLatency: durationFromMs(1_200) });
    expect(shown(judgeProcesses([slow], 0))).toEqual(["problem record-latency"]);
  });
});

describe("judgeServerClock()", () => {
  it.each([
    [100, 10, "ok"],
    [-5_000, 10, "warning"],
    [60_000, 10, "problem"],
    [60_000, 60_000, "ok"],
  ])("should judge %d ms, known to %d ms: %s", (aheadMs, uncertainMs, verdict) => {
    expect(judgeServerClock(aheadMs, uncertainMs).verdict).toBe(verdict);
  });
});

describe("judgeExpiry()", () => {
  it.each([
    [-1, "problem"],
    [2 * DAY_MS, "problem"],
    [10 * DAY_MS, "warning"],
    [60 * DAY_MS, "ok"],
  ])("should judge a certificate that ends in %d ms: %s", (leftMs, verdict) => {
    expect(judgeExpiry("a", 1_800_000_000_000 + leftMs, 1_800_000_000_000).verdict).toBe(verdict);
  });
});

describe("judgeVersions()", () => {
  const spread = (ours: readonly string[], agents: readonly string[]) =>
    shown(
      judgeVersions(
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
  ])("should judge processes %j with agents %j", (ours, agents, findings) => {
    expect(spread(ours, agents)).toEqual(findings);
  });
});

describe("judgeStatus()", () => {
  it("should judge the relay, upkeep, and who may join", () => {
    const status = create(GetControlPlaneStatusResponseSchema, {
      relay: { configured: true, instance: "", lag: 7n },
      upkeep: [{ name: "compact-events", outcome: UpkeepOutcome.FAILED }],
      joining: { warnings: ["any machine can join"] },
    });
    expect(shown(judgeStatus(status))).toEqual(["problem nats-relay", "problem upkeep", "warning joining"]);
    const behind = create(GetControlPlaneStatusResponseSchema, {
      relay: { configured: true, instance: "r-1", lag: 5_000n },
    });
    expect(shown(judgeStatus(behind))).toEqual(["warning nats-relay"]);
    const slow = create(GetControlPlaneStatusResponseSchema, {
      relay: { configured: true, instance: "r-1", lag: 1n, waiting: durationFromMs(61_000) },
    });
    expect(shown(judgeStatus(slow))).toEqual(["problem nats-relay"]);
  });
});

describe("judgeAddress()", () => {
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
  ])("should judge %j", (change, findings) => {
    expect(shown(judgeAddress("address", { ...probe, ...change }, 0))).toEqual(findings);
  });
});

describe("worstOf()", () => {
  const of = (verdict: Finding["verdict"]): Finding => ({ check: "c", subject: "s", verdict, found: "", advice: "" });

  it("should put a problem before what could not be checked, and that before a warning", () => {
    expect(worstOf([])).toBe("ok");
    expect(worstOf([of("ok"), of("warning")])).toBe("warning");
    expect(worstOf([of("warning"), of("unknown")])).toBe("unknown");
    expect(worstOf([of("unknown"), of("problem"), of("ok")])).toBe("problem");
  });
});

describe("judgeContainment()", () => {
  it("should warn of nodes on which processes can outlive their execution", () => {
    expect(shown(judgeContainment([]))).toEqual([]);
    expect(judgeContainment(["n1"])).toMatchObject([{ verdict: "warning", check: "containment", subject: "n1" }]);
  });
});
