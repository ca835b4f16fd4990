import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type KeyDeclaration, loadConfig, printDefaultYaml } from "@rollcall/config";
import { createTestShell } from "../testing/run-client.ts";
import { loadAgentConfig } from "../verbs/agent.ts";
import { keeperFlags } from "../work/keeper-settings.ts";
import { ALL_KEYS } from "./all-keys.ts";
import { createConfigurationView } from "./configuration-view.ts";
import { loadControlPlaneConfig } from "./control-plane-config.ts";
import { loadConfiguration } from "./load.ts";

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), "rollcall-config-"));
});
afterAll(() => rmSync(cwd, { recursive: true }));

async function load(yaml: string, env: Record<string, string> = {}, flags = {}) {
  writeFileSync(join(cwd, "c.yaml"), yaml);
  const { values } = await loadControlPlaneConfig({ shell: { env, cwd }, file: "c.yaml", flags });
  return values;
}

describe("settings that are paths", () => {
  const keys = Object.entries<KeyDeclaration<unknown>>(ALL_KEYS);
  const isPath = ({ 1: key }: (typeof keys)[number]) => key.isPath === true;

  it("should be resolved against the working directory, for every reader of the file", async () => {
    const values = await load("TLS: {AgentCAFile: agents.pem}\n", {
      ROLLCALL_WEBHOOKS_AUTHORITYFILE: "/etc/hooks.pem",
    });
    expect(values).toMatchObject({
      "TLS.AgentCAFile": join(cwd, "agents.pem"),
      "Webhooks.AuthorityFile": "/etc/hooks.pem",
    });
    writeFileSync(join(cwd, "c.yaml"), "Work: {Secrets: secrets}\n");
    const flags = { "ca-file": "../ca.pem" };
    const config = await loadAgentConfig({ file: "c.yaml", flags }, { env: {}, cwd }, false);
    // The path must be absolute, because the agent starts its keeper in another directory.
    expect(keeperFlags(config.values)).toContain(`Work.Secrets=${join(cwd, "secrets")}`);
    expect(config.values["Compute.TLS.CAFile"]).toBe(join(cwd, "../ca.pem"));
  });

  it("should all be declared as paths, unless they must be absolute", () => {
    const named = keys.map(([path]) => path).filter((path) => /(File|Dir|Directory)$/.test(path));
    const declared = keys.filter(isPath).map(([path]) => path);
    expect(named.filter((path) => !declared.includes(path))).toEqual(["Work.KeeperDir"]);
    expect(declared.filter((path) => !named.includes(path))).toEqual(["Work.Secrets"]);
  });
});

describe("loadControlPlaneConfig()", () => {
  it("should accept Bacalhau's documentation unchanged", async () => {
    const values = await load(`
Orchestrator:
  NodeManager:
    ManualApproval: true
    DisconnectTimeout: 2m
Compute:
  Heartbeat:
    Interval: 5s
    InfoUpdateInterval: 30s
`);
    expect(values).toMatchObject({
      "Orchestrator.NodeManager.ManualApproval": true,
      "Orchestrator.NodeManager.DisconnectTimeout": 120_000,
      "Compute.Heartbeat.Interval": 5_000,
      "Compute.Heartbeat.InfoUpdateInterval": 30_000,
    });
  });

  it("should accept Bacalhau's older names, for both kinds of nodes", async () => {
    const values = await load(`
Node:
  Compute:
    ControlPlaneSettings:
      InfoUpdateFrequency: 90s
      ResourceUpdateFrequency: 30s
      HeartbeatFrequency: 10s
  Requester:
    ManualNodeApproval: true
    ControlPlaneSettings:
      HeartbeatFrequency: 1s
      NodeDisconnectedAfter: 30s
`);
    expect(values).toMatchObject({
      "Compute.Heartbeat.Interval": 10_000,
      "Compute.Heartbeat.InfoUpdateInterval": 90_000,
      "Orchestrator.NodeManager.ManualApproval": true,
      "Orchestrator.NodeManager.DetectorTick": 1_000,
      "Orchestrator.NodeManager.DisconnectTimeout": 30_000,
    });
  });

  it("should accept KohakuRiver's names, and bare numbers as seconds", async () => {
    expect(await load("HEARTBEAT_INTERVAL: 5\nHEARTBEAT_TIMEOUT: 30\n")).toMatchObject({
      "Compute.Heartbeat.Interval": 5_000,
      "Orchestrator.NodeManager.DisconnectTimeout": 30_000,
    });
  });

  it("should let flags win over the environment, and the environment over the file", async () => {
    const yaml = "listen: {PORT: 1, Host: 10.0.0.1}\nLog: {Level: warn}\n";
    const env = {
      ROLLCALL_LISTEN_PORT: "2",
      ROLLCALL_LISTEN_HOST: "10.0.0.2",
      ROLLCALL_SCHEDULER: "127.0.0.1:7713",
      ROLLCALL_TOKEN: "x",
    };
    expect(await load(yaml, env, { port: "3" })).toMatchObject({
      "Listen.Port": 3,
      "Listen.Host": "10.0.0.2",
      "Log.Level": "warn",
    });
  });

  it("should accept DATABASE_URL and ROLLCALL_DATA_DIR", async () => {
    const env = { DATABASE_URL: "postgres://db/x", ROLLCALL_DATA_DIR: "/data" };
    expect(await load("", env)).toMatchObject({
      "Database.URL": "postgres://db/x",
      "Data.Dir": "/data",
    });
  });

  it("should name file, line and nearest key for unknown keys, and all problems at once", async () => {
    await expect(load("Orchestrator:\n  NodeManager:\n    ManualAproval: true\nLog:\n  Level: loud\n")).rejects.toThrow(
      /^invalid configuration:\nc\.yaml:3: unknown key Orchestrator\.NodeManager\.ManualAproval, the nearest is Orchestrator\.NodeManager\.ManualApproval\nc\.yaml:5: Log\.Level: "loud" is not one of trace, /,
    );
  });

  it("should refuse values that contradict each other", async () => {
    await expect(load("Orchestrator: {NodeManager: {DisconnectTimeout: 10m, UnknownTimeout: 5m}}\n")).rejects.toThrow(
      /^invalid configuration:\nc\.yaml:1: /,
    );
  });

  it("should accept Bacalhau's name for the heartbeat topic, and refuse two kinds of NATS credentials", async () => {
    const topic = "Node: {Requester: {ControlPlaneSettings: {HeartbeatTopic: beats}}}\n";
    expect(await load(topic)).toMatchObject({
      "Events.HeartbeatTopic": "beats",
      "Events.Nats.Url": [],
      "Events.Retention": 72 * 3_600_000,
    });
    await expect(load("Events: {Nats: {Token: a, NkeyFile: b}}\n", {}, { nats: "nats://n" })).rejects.toThrow(
      "set at most one kind of NATS credentials",
    );
  });

  it("should refuse a database URL that is not Postgres, without repeating possible passwords", async () => {
    await expect(load("", { DATABASE_URL: "mysql://root:secret@db/rollcall" })).rejects.toThrow(
      /^invalid configuration:\nenvironment DATABASE_URL: Database\.URL: should be an address such as p\S+$/,
    );
    expect(await load("", { DATABASE_URL: "postgresql://db/rollcall" })).toMatchObject({
      "Database.URL": "postgresql://db/rollcall",
    });
  });

  it("should treat any wrong setting as wrong usage", async () => {
    const failureOf = (env: Record<string, string>, flags: Record<string, readonly string[]>) =>
      loadConfiguration({ keys: ALL_KEYS }, { shell: { env, cwd }, file: undefined, flags }).then(
        () => null,
        (error: unknown) => (error instanceof Error ? error.name : "?"),
      );
    const wrong = { name: ["no name"] };
    expect(await failureOf({}, wrong)).toBe("UsageError");
    expect(await failureOf({ ROLLCALL_COMPUTE_NAME: "no name" }, {})).toBe("UsageError");
  });

  it("should report a file that it cannot read", async () => {
    await expect(
      loadControlPlaneConfig({
        shell: { env: { ROLLCALL_CONFIG: "gone.yaml" }, cwd },
        file: undefined,
        flags: {},
      }),
    ).rejects.toThrow(/^cannot read the configuration file gone\.yaml: no such file or directory/);
  });
});

describe("ALL_KEYS", () => {
  it("should print a file that changes nothing", () => {
    const text = printDefaultYaml(ALL_KEYS);
    const defaults = loadConfig({ keys: ALL_KEYS });
    const loaded = loadConfig({ keys: ALL_KEYS, file: { name: "default.yaml", text } });
    expect(loaded.ok && loaded.config.values).toEqual(defaults.ok && defaults.config.values);
  });
});

describe("createConfigurationView()", () => {
  it("should list every key with its value and where it comes from, and no secret", async () => {
    writeFileSync(join(cwd, "c.yaml"), "HEARTBEAT_TIMEOUT: 30\n");
    const env = { DATABASE_URL: "postgres://me:secret@db/x" };
    const view = createConfigurationView(createTestShell({ cwd, env }));
    const { settings, problems } = await view.list("c.yaml");
    expect(problems).toEqual([]);
    expect(settings.map(({ path }) => path)).toEqual(Object.keys(ALL_KEYS));
    const byPath = new Map(settings.map((setting) => [setting.path, setting]));
    expect(byPath.get("Orchestrator.NodeManager.DisconnectTimeout")).toMatchObject({
      value: "30s",
      default: "1m",
      source: "c.yaml:1",
      alias: "HEARTBEAT_TIMEOUT",
    });
    expect(byPath.get("Database.URL")).toMatchObject({
      value: "(secret)",
      source: "environment DATABASE_URL",
    });
  });

  it("should report contradictions as up would, and still show the values", async () => {
    writeFileSync(join(cwd, "half.yaml"), "Log:\n  Level: info\nTLS:\n  CertFile: c.pem\n");
    const view = createConfigurationView(createTestShell({ cwd, env: {} }));
    const { settings, problems } = await view.list("half.yaml");
    expect(settings.find(({ path }) => path === "TLS.CertFile")?.value).toBe(join(cwd, "c.pem"));
    expect(problems).toEqual(["TLS.KeyFile: TLS.CertFile and TLS.KeyFile must be set together"]);
  });
});
