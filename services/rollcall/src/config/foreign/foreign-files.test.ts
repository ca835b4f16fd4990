import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { BACALHAU_REFERENCE } from "../../testing/bacalhau-reference.ts";
import { ALL_SAMPLES, agent, controlPlane, SAMPLES } from "../../testing/sample-configs.ts";
import { ALL_KEYS } from "../all-keys.ts";
import { foreignKeys } from "./foreign-keys.ts";

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), "rollcall-foreign-"));
});
afterAll(() => rmSync(cwd, { recursive: true }));

/** Write a file with this text and load it. */
async function written(text: string, name = "c.yaml") {
  writeFileSync(join(cwd, name), text);
  return controlPlane(name, {}, cwd);
}

describe("whole configuration files of other programs", () => {
  it.each(ALL_SAMPLES)("should load %s for both sides, with one warning", async (file) => {
    for (const { warnings } of [await controlPlane(file), await agent(file)]) {
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatchObject({
        where: file,
        message: expect.stringMatching(/^keys of another program: ignored, because Rollcall/),
      });
      expect(warnings[0]?.message).not.toContain("not-for-rollcall");
    }
  });

  it("should convert what applies from Bacalhau's orchestrator", async () => {
    const { values, warnings } = await controlPlane("bacalhau-orchestrator.yaml");
    expect(values).toMatchObject({
      "Orchestrator.NodeManager.ManualApproval": true,
      "Orchestrator.NodeManager.DisconnectTimeout": 120_000,
      "Listen.Port": 1234,
      // The host is loopback, because without TLS, other machines must not reach the control plane.
      "Listen.Host": "127.0.0.1",
      "Log.Format": "json",
      "Up.TLS": false,
    });
    for (const name of ["NameProvider", "API.Host", "Orchestrator.Enabled", "Engines.Types", "WebUI.Listen"]) {
      expect(warnings[0]?.message).toMatch(new RegExp(`[ ,]${name}[, ]`));
    }
  });

  it("should convert what applies from Bacalhau's compute node", async () => {
    const { values, warnings } = await agent("bacalhau-compute.yaml");
    expect(values).toMatchObject({
      "Compute.Server": { host: "orchestrator.example", port: 7700, scheme: undefined },
      "Compute.JoinToken": undefined,
      "Compute.Labels": { region: "eu-west", gpu: "true" },
      "Compute.Heartbeat.Interval": 15_000,
      "Compute.Heartbeat.InfoUpdateInterval": 60_000,
      "Compute.Heartbeat.ResourceUpdateInterval": 30_000,
      "Log.Level": "fatal",
    });
    expect(warnings[0]?.message).toContain(
      "Compute.Orchestrators is read as Compute.Server: the agent registers at orchestrator.example:7700",
    );
    expect(warnings[0]?.message).not.toContain("secret@");
  });

  it("should convert what applies from Bacalhau's keys before 1.5", async () => {
    expect((await controlPlane("bacalhau-1.4.yaml")).values).toMatchObject({
      "Orchestrator.NodeManager.ManualApproval": true,
      "Orchestrator.NodeManager.DisconnectTimeout": 40_000,
      "Orchestrator.NodeManager.DetectorTick": 30_000,
      "Events.HeartbeatTopic": "heartbeat",
      "Compute.Heartbeat.InfoUpdateInterval": 60_000,
    });
    expect((await agent("bacalhau-1.4.yaml")).values).toMatchObject({
      "Compute.Server": { host: "requester.example", port: 7700 },
      "Compute.Name": "n-old",
      "Compute.Labels": { zone: "a" },
    });
  });

  it("should accept KohakuRiver's Python files, seconds and factors", async () => {
    const { values } = await controlPlane("host_config.py");
    expect(values).toMatchObject({
      "Compute.Heartbeat.Interval": 5_000,
      "Orchestrator.NodeManager.DisconnectTimeoutFactor": 6,
      "Listen.Host": "127.0.0.1",
      "Listen.Port": 7700,
      "Log.Level": "warn",
    });
    expect((await agent("runner_config.py")).values).toMatchObject({
      "Compute.Server": { host: "192.0.2.10", port: 7700 },
      "Compute.Heartbeat.Interval": 5_000,
      "Log.Level": "trace",
    });
  });

  it.each(ALL_SAMPLES)("should know the meaning of every key of %s, or why it has none", (file) => {
    const foreign = foreignKeys();
    const surroundings = { ours: () => undefined, theirs: () => undefined };
    for (const path of foreign.paths) {
      const meaning = foreign.find(path)?.meaning("x", surroundings);
      expect(meaning).toMatchObject(
        meaning?.kind === "sets" ? { path: expect.any(String) } : { why: expect.stringMatching(/./) },
      );
      if (meaning?.kind === "sets") expect(Object.keys(ALL_KEYS)).toContain(meaning.path);
    }
    expect(readFileSync(join(SAMPLES, file), "utf8").length).toBeGreaterThan(100);
  });
});

describe("names from the documentation of other programs", () => {
  const interval = "Compute.Heartbeat.Interval";
  const info = "Compute.Heartbeat.InfoUpdateInterval";
  const timeout = "Orchestrator.NodeManager.DisconnectTimeout";
  const tick = "Orchestrator.NodeManager.DetectorTick";

  it.each([
    ["HeartbeatFrequency", interval],
    ["Compute.HeartbeatFrequency", interval],
    ["Node.Compute.HeartbeatFrequency", interval],
    ["Compute.ControlPlaneSettings.HeartbeatFrequency", interval],
    ["Node.Compute.ControlPlaneSettings.HeartbeatFrequency", interval],
    ["InfoUpdateFrequency", info],
    ["Requester.InfoUpdateFrequency", info],
    ["Node.Compute.InfoUpdateFrequency", info],
    ["NodeDisconnectedAfter", timeout],
    ["Requester.NodeDisconnectedAfter", timeout],
    ["Requester.HeartbeatFrequency", tick],
    ["HeartbeatCheckFrequency", tick],
    ["HEARTBEAT_INTERVAL", interval],
    ["HEARTBEAT_INTERVAL_SECONDS", interval],
    ["HEARTBEAT_TIMEOUT", timeout],
  ] as const)("should take %s for %s", async (name, key) => {
    const { values, warnings } = await written(`${name}: 30\n`);
    expect(values[key]).toBe(30_000);
    expect(warnings).toEqual([]);
  });

  it.each(["ResourceUpdateFrequency", "Requester.ResourceUpdateFrequency", "Compute.ResourceUpdateFrequency"])(
    "should take %s for the agent's measurements",
    async (name) => {
      writeFileSync(join(cwd, "r.yaml"), `${name}: 15 seconds\n`);
      const { values } = await agent("r.yaml", cwd);
      expect(values["Compute.Heartbeat.ResourceUpdateInterval"]).toBe(15_000);
    },
  );

  it.each([
    "Node.Compute.ControlPlaneSettings.HeartbeatTopic",
    "Compute.ControlPlaneSettings.HeartbeatTopic",
    "Compute.HeartbeatTopic",
  ])("should leave %s aside", async (name) => {
    const { values, warnings } = await written(`${name}: heartbeat\n`);
    expect(values["Events.HeartbeatTopic"]).toBeUndefined();
    expect(warnings).toHaveLength(1);
  });

  it.each([
    ["1 minute", 60_000],
    ["15 seconds", 15_000],
    ["1m0s", 60_000],
  ])("should take a duration of %s", async (text, ms) => {
    expect((await written(`InfoUpdateFrequency: ${text}\n`)).values[info]).toBe(ms);
  });

  it("should accept KohakuRiver's names in the environment", async () => {
    const env = { HEARTBEAT_INTERVAL: "5", HEARTBEAT_TIMEOUT: "30" };
    expect((await controlPlane(undefined, env)).values).toMatchObject({
      [interval]: 5_000,
      [timeout]: 30_000,
    });
    const precise = { HEARTBEAT_INTERVAL_SECONDS: "4", HEARTBEAT_TIMEOUT_FACTOR: "5" };
    expect((await controlPlane(undefined, precise)).values).toMatchObject({
      [interval]: 4_000,
      "Orchestrator.NodeManager.DisconnectTimeoutFactor": 5,
    });
    const own = { ...env, ROLLCALL_COMPUTE_HEARTBEAT_INTERVAL: "7s" };
    expect((await controlPlane(undefined, own)).values[interval]).toBe(7_000);
  });

  it("should follow API.Host beyond loopback where that is safe", async () => {
    const host = "API: {Host: 0.0.0.0, TLS: {CertFile: c.pem, KeyFile: k.pem}}\n";
    const { values, warnings } = await written(host);
    expect(values).toMatchObject({ "Listen.Host": "0.0.0.0", "TLS.CertFile": join(cwd, "c.pem") });
    expect(warnings).toEqual([]);
    const meant = await written("API: {Host: 0.0.0.0}\nListen: {InsecurePlaintext: true}\n");
    expect(meant.values["Listen.Host"]).toBe("0.0.0.0");
    expect((await written("API: {Host: 0.0.0.0}\n")).values["Listen.Host"]).toBe("127.0.0.1");
  });

  it("should let Rollcall's own key win, and say so", async () => {
    const text = "Compute: {Server: 10.0.0.1:7700, Orchestrators: [nats://o:4222]}\n";
    writeFileSync(join(cwd, "both.yaml"), text);
    const { values, warnings } = await agent("both.yaml", cwd);
    expect(values["Compute.Server"]).toMatchObject({ host: "10.0.0.1" });
    expect(warnings[0]?.message).toContain("ignored, because Rollcall does not use them: Compute.Orch");
  });
});

describe("keys that protect something in Bacalhau", () => {
  const compute = async (text: string) => {
    writeFileSync(join(cwd, "compute.yaml"), text);
    return agent("compute.yaml", cwd);
  };

  it.each([
    ['Compute: {Orchestrators: ["nats://o:4222"], TLS: {RequireTLS: true}}', "https"],
    ['Compute: {TLS: {RequireTLS: TRUE}, Orchestrators: ["nats://o:4222"]}', "https"],
    ['Compute: {Orchestrators: ["tls://o:4222"]}', "https"],
    ['Compute: {Orchestrators: ["wss://o:4222"]}', "https"],
    ['Compute: {Orchestrators: ["nats://o:4222"], TLS: {CACert: /ca.pem}}', "https"],
    ['Compute: {Orchestrators: ["nats://o:4222"], TLS: {RequireTLS: false}}', undefined],
  ])("should register over TLS if requested: %s", async (text, scheme) => {
    const { values } = await compute(text);
    expect(values["Compute.Server"]).toEqual({ host: "o", port: 7700, scheme });
  });

  it("should refuse clear text if TLS is required", async () => {
    const text = "Compute: {Server: http://o:7700, TLS: {RequireTLS: true}}";
    await expect(compute(text)).rejects.toThrow("Compute.Server: http:// is not encrypted, but Compute.TLS.RequireTLS");
    await expect(compute("Compute: {TLS: {RequireTLS: maybe}}")).rejects.toThrow('"maybe" is not true or false');
  });

  it("should serve nodes over TLS with their previous certificate", async () => {
    const tls = "Orchestrator: {TLS: {ServerCert: c.pem, ServerKey: k.pem, CACert: ca.pem}}";
    expect((await written(tls)).values).toMatchObject({
      "TLS.CertFile": join(cwd, "c.pem"),
      "TLS.KeyFile": join(cwd, "k.pem"),
      "TLS.CAFile": join(cwd, "ca.pem"),
    });
    expect((await written("Orchestrator: {TLS: {CACert: ca.pem}}")).values["TLS.CAFile"]).toBeUndefined();
  });

  it("should require join tokens if a secret was required, unless an operator approves each node", async () => {
    const key = "Orchestrator.NodeManager.JoinTokens";
    const secret = await written("Orchestrator: {Auth: {Token: s3cret}}");
    expect(secret.values[key]).toBe("strict");
    expect(secret.warnings[0]?.message).toContain("nodes must join with a token here too");
    expect(secret.warnings[0]?.message).not.toContain("s3cret");
    const approved = await written("Orchestrator: {Auth: {Token: x}, NodeManager: {ManualApproval: true}}");
    expect(approved.values[key]).toBe("none");
    const own = await written("Orchestrator: {Auth: {Token: x}, NodeManager: {JoinTokens: warn}}");
    expect(own.values[key]).toBe("warn");
  });

  it("should run no agent if the orchestrator was not a compute node", async () => {
    expect((await written("Compute: {Enabled: false}")).values["Up.Agent"]).toBe(false);
    expect((await written("Compute: {Enabled: true}")).values["Up.Agent"]).toBe(true);
  });

  it.each([
    ["API: {Auth: {AccessPolicyPath: /p.rego}}", "API.Auth"],
    ["API: {Auth: {Oauth2: {Issuer: https://i}}}", "API.Auth"],
    ["API: {TLS: {AutoCert: bacalhau.example}}", "API.TLS.AutoCert"],
    ["Engines: {Disabled: [docker]}", "Engines.Disabled"],
    ["JobAdmissionControl: {RejectNetworkedJobs: true}", "JobAdmissionControl"],
    ["Compute: {AllowListedLocalPaths: [/data]}", "Compute.AllowListedLocalPaths"],
    ["Compute: {Env: {AllowList: [HOME]}}", "Compute.Env"],
    ["Auth: {AccessPolicyPath: /p.rego}", "Auth"],
    ["Node: {DisabledFeatures: {Engines: [docker]}}", "Node.DisabledFeatures"],
  ])("should say why it does nothing here: %s", async (text, key) => {
    const { warnings } = await written(text);
    expect(warnings[0]?.message).toMatch(new RegExp(`${key} is a security setting that has no effect here: \\w`));
  });
});

describe("every key of Bacalhau's reference", () => {
  it.each(BACALHAU_REFERENCE)("should have a meaning, or a reason for having none: %s", async (path, value) => {
    for (const load of [() => written(`${path}: ${value}\n`), () => agent("c.yaml", cwd)]) {
      expect((await load()).warnings.length).toBeLessThanOrEqual(1);
    }
  });

  it.each([
    ["Compute: {AllocatedCapacity: {CPU: 2, Memory: 4GB, Disk: 80%, GPU: 100%}}"],
    ['Node: {Compute: {Capacity: {TotalResourceLimits: {CPU: 2, Memory: 4GB, Disk: 80%, GPU: ""}}}}'],
  ])("should take amounts as Bacalhau does: %s", async (text) => {
    writeFileSync(join(cwd, "amounts.yaml"), text);
    const { values } = await agent("amounts.yaml", cwd);
    expect(values["Compute.AllocatedCapacity"]).toMatchObject({ CPU: "2", Memory: "4GB", Disk: "80%" });
  });

  it("should accept a range of ports", async () => {
    writeFileSync(join(cwd, "ports.yaml"), "Compute: {Network: {PortRangeStart: 21000, PortRangeEnd: 21100}}");
    expect((await agent("ports.yaml", cwd)).values["Work.Ports"]).toBe("21000-21100");
  });
});

describe("mistakes in such files", () => {
  it.each([
    [
      "c.yaml",
      "Orchestrator: {NodeManager: {ManualAproval: true}}\n",
      "the nearest is Orchestrator.NodeManager.ManualApproval",
    ],
    [
      "c.yaml",
      "Orchestrator: {Enabeld: true}\n",
      "unknown key Orchestrator.Enabeld, the nearest is Orchestrator.Enabled",
    ],
    ["c.yaml", "Compute: {Engine: {Resources: {CPU: 1}}}\n", /unknown key Compute\.Engine\.Resources\.CPU; `rollcall/],
    [
      "c.yaml",
      "Node: {Compute: {ControlPlaneSettings: {HeartbeatFrequncy: 1s}}}\n",
      "the nearest is Node.Compute.ControlPlaneSettings.HeartbeatFrequency",
    ],
    ["c.yaml", "NameProvder: hostname\n", "unknown key NameProvder"],
    ["c.yaml", "HEARTBEAT_INTERVAL: 5\nHEARTBEAT_INTERVAL_SECONDS: 6\n", "set twice"],
    ["h.py", "HEARTBEAT_INTERVAL_SECOND = 5\n", "h.py:1: unknown key HEARTBEAT_INTERVAL_SECOND"],
    ["h.py", "HEARTBEAT_INTERVAL_SECONDS = int(os.environ['X'])\n", "Python is not executed"],
    ["h.py", "HEARTBEAT_INTERVAL = 'soon'\n", '"soon" is not a duration'],
  ])("should still be errors: %s with %j", async (name, text, message) => {
    await expect(written(text, name)).rejects.toThrow(message);
  });

  it("should accept the same value twice, and unrelated variables of a Python file", async () => {
    const text = "HEARTBEAT_INTERVAL: 5\nHEARTBEAT_INTERVAL_SECONDS: 5\n";
    expect((await written(text)).values["Compute.Heartbeat.Interval"]).toBe(5_000);
    const { warnings } = await written("base = '/srv'\nSITE_NAME = 'x'\n", "h.py");
    expect(warnings).toEqual([]);
  });
});
