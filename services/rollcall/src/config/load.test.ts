import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { loadConfig, printDefaultYaml } from "@rollcall/config";
import { createTestShell } from "../testing/run-client.ts";
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

describe("loadControlPlaneConfig()", () => {
  it("should take Bacalhau's documentation as it stands", async () => {
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

  it("should take Bacalhau's older names, of nodes of both kinds", async () => {
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

  it("should take KohakuRiver's names, and bare numbers as seconds", async () => {
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

  it("should take DATABASE_URL and ROLLCALL_DATA_DIR", async () => {
    const env = { DATABASE_URL: "postgres://db/x", ROLLCALL_DATA_DIR: "/data" };
    expect(await load("", env)).toMatchObject({
      "Database.URL": "postgres://db/x",
      "Data.Dir": "/data",
    });
  });

  it("should name file, line and nearest key of what it does not know, and every problem at once", async () => {
    await expect(load("Orchestrator:\n  NodeManager:\n    ManualAproval: true\nLog:\n  Level: loud\n")).rejects.toThrow(
      /^the configuration is not right:\nc\.yaml:3: unknown key Orchestrator\.NodeManager\.ManualAproval, the nearest is Orchestrator\.NodeManager\.ManualApproval\nc\.yaml:5: Log\.Level: "loud" is not one of trace, /,
    );
  });

  it("should refuse values that contradict each other", async () => {
    await expect(load("Orchestrator: {NodeManager: {DisconnectTimeout: 10m, UnknownTimeout: 5m}}\n")).rejects.toThrow(
      /^the configuration is not right:\nc\.yaml:1: /,
    );
  });

  it("should take Bacalhau's name for the heartbeat topic, and refuse two ways to say who connects to NATS", async () => {
    const topic = "Node: {Requester: {ControlPlaneSettings: {HeartbeatTopic: beats}}}\n";
    expect(await load(topic)).toMatchObject({
      "Events.HeartbeatTopic": "beats",
      "Events.Nats.Url": [],
      "Events.Retention": 72 * 3_600_000,
    });
    await expect(load("Events: {Nats: {Token: a, NkeyFile: b}}\n", {}, { nats: "nats://n" })).rejects.toThrow(
      "at most one way to say who connects to NATS may be set",
    );
  });

  it("should refuse a record that is no Postgres, and not repeat what may hold a password", async () => {
    await expect(load("", { DATABASE_URL: "mysql://root:secret@db/rollcall" })).rejects.toThrow(
      /^the configuration is not right:\nenvironment DATABASE_URL: Database\.URL: should be an address such as p\S+$/,
    );
    expect(await load("", { DATABASE_URL: "postgresql://db/rollcall" })).toMatchObject({
      "Database.URL": "postgresql://db/rollcall",
    });
  });

  it("should take what is wrong anywhere for wrong usage", async () => {
    const failureOf = (env: Record<string, string>, flags: Record<string, readonly string[]>) =>
      loadConfiguration({ keys: ALL_KEYS }, { shell: { env, cwd }, file: undefined, flags }).then(
        () => null,
        (error: unknown) => (error instanceof Error ? error.name : "?"),
      );
    const wrong = { name: ["no name"] };
    expect(await failureOf({}, wrong)).toBe("UsageError");
    expect(await failureOf({ ROLLCALL_COMPUTE_NAME: "no name" }, {})).toBe("UsageError");
  });

  it("should say that it cannot read a file", async () => {
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

  it("should tell what contradicts itself, as up would, and show it all the same", async () => {
    writeFileSync(join(cwd, "half.yaml"), "Log:\n  Level: info\nTLS:\n  CertFile: c.pem\n");
    const view = createConfigurationView(createTestShell({ cwd, env: {} }));
    const { settings, problems } = await view.list("half.yaml");
    expect(settings.find(({ path }) => path === "TLS.CertFile")?.value).toBe("c.pem");
    expect(problems).toEqual(["TLS.KeyFile: TLS.CertFile and TLS.KeyFile go together"]);
  });
});
