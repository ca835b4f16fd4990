import { describe, expect, it } from "@jest/globals";
import { loadConfig } from "@rollcall/config";
import { DEFAULT_HEALTH_POLICY } from "@rollcall/domain";
import { agentEndpointOf, checkHealthConfig, HEALTH_KEYS, policyOf } from "./config.ts";

function load(text: string) {
  const file = { name: "rollcall.yaml", text };
  return loadConfig({ keys: HEALTH_KEYS, file, check: checkHealthConfig });
}

function policyIn(text: string) {
  const result = load(text);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return policyOf(result.config.values);
}

describe("HEALTH_KEYS", () => {
  it("should be the default policy when nothing is set", () => {
    expect(policyIn("{}")).toEqual(DEFAULT_HEALTH_POLICY);
  });

  it("should read Bacalhau's file unchanged", () => {
    const policy = policyIn(`
Orchestrator: { NodeManager: { DisconnectTimeout: 2m } }
Compute: { Heartbeat: { Interval: 20s, InfoUpdateInterval: 90 } }
`);
    expect(policy).toMatchObject({
      unhealthyAfterMs: 120_000,
      heartbeatIntervalMs: 20_000,
      infoIntervalMs: 90_000,
    });
  });

  it.each([
    ["NodeDisconnectedAfter: 45s", { unhealthyAfterMs: 45_000 }],
    ["HEARTBEAT_TIMEOUT: 40", { unhealthyAfterMs: 40_000 }],
    ["HEARTBEAT_INTERVAL: 5", { heartbeatIntervalMs: 5_000 }],
    ["Compute: { ControlPlaneSettings: { HeartbeatFrequency: 10s } }", { heartbeatIntervalMs: 10_000 }],
    ["Node: { Compute: { ControlPlaneSettings: { InfoUpdateFrequency: 2m } } }", { infoIntervalMs: 120_000 }],
  ])("should accept the older name in %s", (text, expected) => {
    expect(policyIn(text)).toMatchObject(expected);
  });

  it.each([
    ["5m less a bit", "Orchestrator.NodeManager.DisconnectTimeout: 299s", 299_000, 300_000],
    ["no less than the usual", "Orchestrator.NodeManager.DisconnectTimeout: 5m", 300_000, 600_000],
    ["longer", "Orchestrator.NodeManager.DisconnectTimeout: 10m", 600_000, 1_200_000],
    ["a factor", "HEARTBEAT_INTERVAL: 5\nHEARTBEAT_TIMEOUT_FACTOR: 6", 30_000, 300_000],
    ["a factor of the usual interval", "HEARTBEAT_TIMEOUT_FACTOR: 2.5", 37_500, 300_000],
    ["a factor in addition to a time", "HEARTBEAT_TIMEOUT: 50\nHEARTBEAT_TIMEOUT_FACTOR: 6", 90_000, 300_000],
    ["a large factor", "HEARTBEAT_TIMEOUT_FACTOR: 60", 900_000, 1_800_000],
  ])("should follow with UNKNOWN where only UNHEALTHY is set: %s", (_, text, unhealthyAfterMs, unknownAfterMs) => {
    expect(policyIn(text)).toMatchObject({ unhealthyAfterMs, unknownAfterMs });
  });

  it("should accept the older name of the detector's tick", () => {
    const result = load("Requester: { ControlPlaneSettings: { HeartbeatFrequency: 30s } }");
    expect(result.ok && result.config.values["Orchestrator.NodeManager.DetectorTick"]).toBe(30_000);
  });

  it.each([
    ["a threshold below two heartbeats", "Orchestrator: { NodeManager: { DisconnectTimeout: 20s } }"],
    [
      "a threshold beyond the next one",
      "Orchestrator: { NodeManager: { DisconnectTimeout: 10m, UnknownTimeout: 5m } }",
    ],
  ])("should refuse %s, naming the line", (_, text) => {
    const result = load(text);
    expect(result.ok).toBe(false);
    if (!result.ok) expect(result.problems[0]?.where).toBe("rollcall.yaml:1");
  });
});

describe("agentEndpointOf()", () => {
  it.each([
    ["what is configured", { advertise: "hb.example.com:443", hostname: "h" }, "hb.example.com:443"],
    ["the port where only a host is configured", { advertise: "hb.example.com", hostname: "h" }, "hb.example.com:7701"],
    ["an address of IPv6 in brackets", { advertise: "2001:db8::7", hostname: "h" }, "[2001:db8::7]:7701"],
    ["an address of IPv6 with its port", { advertise: "[2001:db8::7]:443", hostname: "h" }, "[2001:db8::7]:443"],
    ["this machine's name", { advertise: undefined, hostname: "h" }, "h:7701"],
    ["the registry's own host in one process", { advertise: undefined, hostname: null }, ":7701"],
  ])("should be %s", (_, options, expected) => {
    expect(agentEndpointOf({ ...options, port: 7701 })).toBe(expected);
  });
});
