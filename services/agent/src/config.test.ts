import { describe, expect, it } from "@jest/globals";
import { loadConfig } from "@rollcall/config";
import { agentKeys, checkAgentConfig, chooseNodeId } from "./config.ts";

const load = (flags: Record<string, string>) => loadConfig({ keys: agentKeys, flags, check: checkAgentConfig });

describe("agentKeys", () => {
  it("should be valid without any setting", () => {
    const result = load({});
    expect(result.ok && result.config.values).toMatchObject({
      "Compute.Server": { host: "127.0.0.1", port: 7700 },
      "Compute.Name": undefined,
      "Compute.Heartbeat.Interval": undefined,
    });
  });

  it.each([
    ["Compute.Heartbeat.Interval", "Compute.Heartbeat.Interval"],
    ["compute.heartbeat.infoupdateinterval", "Compute.Heartbeat.InfoUpdateInterval"],
    ["Node.Compute.ControlPlaneSettings.InfoUpdateFrequency", "Compute.Heartbeat.InfoUpdateInterval"],
    ["Node.Compute.ControlPlaneSettings.ResourceUpdateFrequency", "Compute.Heartbeat.ResourceUpdateInterval"],
    ["Node.Compute.ControlPlaneSettings.HeartbeatFrequency", "Compute.Heartbeat.Interval"],
    ["HEARTBEAT_INTERVAL", "Compute.Heartbeat.Interval"],
  ] as const)("should take %s for %s", (alias, key) => {
    const result = load({ [alias]: "30s" });
    expect(result.ok && result.config.values[key]).toBe(30_000);
  });

  it("should report all problems with labels", () => {
    const result = load({ label: "rollcall.io/zone=a,-bad=b" });
    expect(result.ok).toBe(false);
    expect(!result.ok && result.problems.map((problem) => problem.message)).toEqual([
      expect.stringContaining("rollcall.io/"),
      expect.stringContaining("-bad"),
    ]);
  });

  it("should refuse a name that is not a node id", () => {
    expect(load({ name: "-node" }).ok).toBe(false);
  });
});

describe("chooseNodeId()", () => {
  it.each([
    ["configured", "registered", "host", "configured"],
    [undefined, "registered", "host", "registered"],
    [undefined, undefined, "host.example.com", "host.example.com"],
  ])("should choose among %s, %s and %s", (configured, registered, hostname, chosen) => {
    expect(chooseNodeId(configured, registered, hostname)).toBe(chosen);
  });

  it("should advise what to do about a host name that is not a valid id", () => {
    expect(() => chooseNodeId(undefined, undefined, "мой-компьютер")).toThrow("--name");
  });
});
