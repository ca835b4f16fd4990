import { describe, expect, it } from "@jest/globals";
import { formatProblems } from "./assignment.ts";
import { defineKeys } from "./keys.ts";
import { listConfig } from "./list-config.ts";
import { type LoadOptions, loadConfig } from "./load-config.ts";
import { type Address, address, bool, duration, int, optional, stringMap, text } from "./value-types.ts";

const KEYS = defineKeys({
  "Orchestrator.NodeManager.ManualApproval": {
    schema: bool(),
    default: false,
    doc: "Whether new nodes wait for an operator.",
    flag: "manual-approval",
  },
  "Orchestrator.NodeManager.DisconnectTimeout": {
    schema: duration({ minMs: 1_000 }),
    default: 60_000,
    doc: "How long a node may be silent before it is unhealthy.",
    aliases: ["Node.Requester.ControlPlaneSettings.NodeDisconnectedAfter", "HEARTBEAT_TIMEOUT"],
  },
  "Compute.Heartbeat.Interval": {
    schema: duration(),
    default: 15_000,
    doc: "How often an agent wishes to beat.",
    aliases: ["HEARTBEAT_INTERVAL"],
  },
  "Compute.Labels": {
    schema: stringMap(),
    default: {},
    doc: "What the node says of itself.",
    flag: "label",
  },
  "Server.Address": {
    schema: address(),
    default: { host: "127.0.0.1", port: 7700 } as Address,
    doc: "Where to listen.",
  },
  "Store.Url": {
    schema: optional(text()),
    default: undefined,
    doc: "The Postgres to use.",
    env: ["DATABASE_URL"],
    secret: true,
  },
  "Store.PoolSize": { schema: int({ min: 1, max: 100 }), default: 10, doc: "Most connections." },
});
const SCHEDULER_KEYS = defineKeys({
  "Scheduler.QueueTimeout": { schema: duration(), default: 0, doc: "How long a job may wait." },
});
type Values = typeof KEYS extends import("./keys.ts").ConfigKeys<infer T> ? T : never;

function load(text: string, more: Partial<LoadOptions<Values>> = {}) {
  return loadConfig({ keys: KEYS, file: { name: "rollcall.yaml", text }, ...more });
}

function valuesOf(text: string, more: Partial<LoadOptions<Values>> = {}) {
  const result = load(text, more);
  if (!result.ok) throw new Error(formatProblems(result.problems));
  return result.config.values;
}

function problemsOf(text: string, more: Partial<LoadOptions<Values>> = {}): string[] {
  const result = load(text, more);
  return result.ok ? [] : formatProblems(result.problems).split("\n");
}

describe("loadConfig()", () => {
  it("should return typed and frozen defaults when nothing is set", () => {
    const values = valuesOf("");
    const approval: boolean = values["Orchestrator.NodeManager.ManualApproval"];
    expect(approval).toBe(false);
    expect(values["Store.Url"]).toBeUndefined();
    expect(() => Object.assign(values, { "Store.PoolSize": 1 })).toThrow();
    expect(() => Object.assign(values["Server.Address"], { port: 1 })).toThrow();
  });

  it.each([
    ["as documented", "Orchestrator: {NodeManager: {ManualApproval: true}}"],
    ["in lower case", "orchestrator:\n  nodemanager:\n    manualapproval: yes\n"],
    ["with dots", "Orchestrator.NodeManager.ManualApproval: on"],
    ["in mixed forms", "Orchestrator:\n  NodeManager.ManualApproval: 1\n"],
    ["through an anchor", "x-a: &on true\nOrchestrator: {NodeManager: {ManualApproval: *on}}"],
  ])("should read Bacalhau's key %s", (form, file) => {
    if (form === "through an anchor") {
      expect(problemsOf(file)).toEqual([expect.stringContaining("unknown key x-a")]);
    } else {
      expect(valuesOf(file)["Orchestrator.NodeManager.ManualApproval"]).toBe(true);
    }
  });

  it("should prefer flags to the environment, and the environment to the file", () => {
    const path = "Orchestrator.NodeManager.DisconnectTimeout";
    const file = "Orchestrator: {NodeManager: {DisconnectTimeout: 2m}}";
    const env = { ROLLCALL_ORCHESTRATOR_NODEMANAGER_DISCONNECTTIMEOUT: "90" };
    expect(valuesOf(file)[path]).toBe(120_000);
    expect(valuesOf(file, { env })[path]).toBe(90_000);
    expect(valuesOf(file, { env, flags: { [path]: "45s" } })[path]).toBe(45_000);
  });

  it("should accept flags by name, in either form, and several variables for one key", () => {
    const path = "Orchestrator.NodeManager.ManualApproval";
    expect(valuesOf("", { flags: { "manual-approval": true } })[path]).toBe(true);
    expect(valuesOf("", { flags: { manualApproval: "true", label: undefined } })[path]).toBe(true);
    const env = { DATABASE_URL: "postgres://a", ROLLCALL_STORE_URL: "postgres://b" };
    expect(valuesOf("", { env })["Store.Url"]).toBe("postgres://b");
    expect(valuesOf("", { env: { ...env, ROLLCALL_STORE_URL: "" } })["Store.Url"]).toBe("postgres://a");
  });

  it("should accept aliases and report their use", () => {
    const result = load("HEARTBEAT_TIMEOUT: 30\n");
    if (!result.ok) throw new Error(formatProblems(result.problems));
    expect(result.config.values["Orchestrator.NodeManager.DisconnectTimeout"]).toBe(30_000);
    const setting = listConfig(result.config).find((it) => it.alias !== undefined);
    expect(setting).toMatchObject({
      path: "Orchestrator.NodeManager.DisconnectTimeout",
      value: "30s",
      default: "1m",
      source: "rollcall.yaml:1",
      alias: "HEARTBEAT_TIMEOUT",
    });
  });

  it("should report all problems together, each with its location", () => {
    const file = `Orchestrator:
  NodeManager:
    ManualAproval: true
    DisconnectTimeout: soon
Compute:
  Heartbeat: {Interval: 15s}
  Heartbeet:
    Interval: 15s
Storage: 1
Store:
  PoolSize: 1000
`;
    expect(problemsOf(file, { env: { ROLLCALL_SERVER_ADDRESS: "here" }, flags: { colour: "red" } })).toEqual([
      "rollcall.yaml:3: unknown key Orchestrator.NodeManager.ManualAproval, the nearest is " +
        "Orchestrator.NodeManager.ManualApproval",
      "rollcall.yaml:8: unknown key Compute.Heartbeet.Interval, the nearest is Compute.Heartbeat.Interval",
      "rollcall.yaml:9: unknown key Storage; `rollcall config default` explains every key",
      "flag --colour: unknown key colour; `rollcall config default` explains every key",
      'rollcall.yaml:4: Orchestrator.NodeManager.DisconnectTimeout: "soon" is not a duration such as 15s, ' +
        "1h30m or 250ms",
      'environment ROLLCALL_SERVER_ADDRESS: Server.Address: "here" is not an address HOST:PORT',
      "rollcall.yaml:11: Store.PoolSize: 1000 is more than 100",
    ]);
  });

  it.each([
    [
      "a key twice",
      "Store: {PoolSize: 5}\nstore: {poolsize: 6}\n",
      "rollcall.yaml:2: Store.PoolSize: set twice, here and at rollcall.yaml:1",
    ],
    [
      "a key and its alias",
      "Compute: {Heartbeat: {Interval: 1s}}\nheartbeat_interval: 2s\n",
      "rollcall.yaml:2: Compute.Heartbeat.Interval: set twice, here (as its alias HEARTBEAT_INTERVAL) and at " +
        "rollcall.yaml:1",
    ],
    ["a section that is a value", "Store: 5\n", "rollcall.yaml:1: Store must be a section"],
    [
      "a value that is a section",
      "Store:\n  PoolSize:\n    Max: 5\n",
      'rollcall.yaml:2: Store.PoolSize: {"Max":"5"} is not a whole number',
    ],
    ["no map at all", "- a\n", "rollcall.yaml:1: the file must be a map of keys"],
    ["broken YAML", "Store:\n  PoolSize: [1\n", expect.stringMatching(/^rollcall\.yaml:\d: Flow sequence/)],
  ])("should refuse %s", (_, file, problem) => {
    expect(problemsOf(file)).toContainEqual(problem);
  });

  it("should treat a key without a value as absent", () => {
    expect(valuesOf("Store:\n  PoolSize:\n  Url: ~\nCompute:\n")["Store.PoolSize"]).toBe(10);
  });

  it("should survive malicious files", () => {
    expect(problemsOf(`Store: ${"[".repeat(1_000)}`).length).toBeGreaterThan(0);
    expect(problemsOf(`Compute:\n  Labels: ${"{a: ".repeat(500)}b${"}".repeat(500)}`).length).toBeGreaterThan(0);
    expect(problemsOf(`Store: ${" ".repeat(70_000)}`)).toEqual(["rollcall.yaml: the file is too large"]);
    const lines = Array.from({ length: 30 }, (_, at) => {
      const before = at === 0 ? "a" : `b${at - 1}`;
      return `b${at}: &b${at} [*${before}, *${before}]`;
    });
    const bomb = `a: &a [x]\n${lines.join("\n")}`;
    expect(problemsOf(`${bomb}\nCompute:\n  Labels: *b29`).length).toBeGreaterThan(0);
    expect(problemsOf("__proto__: {polluted: 1}")).toEqual([expect.stringContaining("unknown key __proto__")]);
  });

  it("should check relations between valid values and report where they were set", () => {
    const check = (values: Readonly<Values>) =>
      values["Compute.Heartbeat.Interval"] * 2 > values["Orchestrator.NodeManager.DisconnectTimeout"]
        ? [
            {
              path: "Compute.Heartbeat.Interval" as const,
              message: "must fit twice into DisconnectTimeout",
            },
          ]
        : [];
    expect(problemsOf("Compute: {Heartbeat: {Interval: 31s}}", { check })).toEqual([
      "rollcall.yaml:1: Compute.Heartbeat.Interval: must fit twice into DisconnectTimeout",
    ]);
    expect(problemsOf("HEARTBEAT_TIMEOUT: 20s", { check })).toEqual([
      "Compute.Heartbeat.Interval: must fit twice into DisconnectTimeout",
    ]);
    expect(problemsOf("Compute: {Heartbeat: {Interval: 31x}}", { check })).toHaveLength(1);
  });

  it("should only warn about a relation if it allows variables shared with other programs", () => {
    const ofOthers = "is not used";
    const check = () => [{ path: "Store.Url" as const, message: "is wrong", ofOthers }];
    const shared = load("", { check, env: { DATABASE_URL: "postgres://a" } });
    expect(shared.ok && formatProblems(shared.config.warnings)).toBe(
      "environment DATABASE_URL: Store.Url: is not used",
    );
    const own = load("", { check, env: { ROLLCALL_STORE_URL: "postgres://a" } });
    expect(!own.ok && formatProblems(own.problems)).toBe("environment ROLLCALL_STORE_URL: Store.Url: is wrong");
    expect(problemsOf("", { check })).toEqual(["Store.Url: is wrong"]);
  });

  it("should ignore other services' keys and warn about unknown variables", () => {
    const result = load("Scheduler: {QueueTimeout: 5m}\n", {
      alsoKnown: SCHEDULER_KEYS,
      env: { ROLLCALL_STORE_POOLSISE: "5", ROLLCALL_SCHEDULER_QUEUETIMEOUT: "1m", HOME: "/root" },
    });
    if (!result.ok) throw new Error(formatProblems(result.problems));
    expect(formatProblems(result.config.warnings)).toBe(
      "environment ROLLCALL_STORE_POOLSISE: unknown key STORE.POOLSISE, the nearest is Store.PoolSize",
    );
    expect(Object.keys(result.config.values)).toEqual(Object.keys(KEYS));
    expect(problemsOf("Scheduler: {QueueTimeout: 5m}")).toHaveLength(1);
  });

  it("should never show a secret", () => {
    const secret = {
      ...KEYS,
      "Store.Url": {
        ...KEYS["Store.Url"],
        schema: text({ pattern: /^postgres:/ }),
        default: "postgres://x:hunter2@h",
      },
    };
    const bad = loadConfig({ keys: secret, env: { DATABASE_URL: "mysql://x:hunter3@h" } });
    if (bad.ok) throw new Error("it was accepted");
    expect(formatProblems(bad.problems)).toBe("environment DATABASE_URL: Store.Url: the value is invalid");
    const good = loadConfig({ keys: secret });
    if (!good.ok) throw new Error("it was refused");
    expect(JSON.stringify(listConfig(good.config))).not.toContain("hunter");
  });

  it("should not accept two keys with the same name", () => {
    const twins = {
      ...KEYS,
      ...defineKeys({ heartbeat_interval: { schema: bool(), default: true, doc: "x" } }),
    };
    expect(() => loadConfig({ keys: twins })).toThrow("share heartbeat_interval");
  });
});
