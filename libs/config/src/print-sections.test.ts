import { describe, expect, it } from "@jest/globals";
import { defineKeys } from "./keys.ts";
import { loadConfig } from "./load-config.ts";
import { printDefaultYaml } from "./print-sections.ts";
import { address, bool, duration, list, optional, stringMap, text } from "./value-types.ts";

const KEYS = defineKeys({
  "Orchestrator.NodeManager.ManualApproval": {
    schema: bool(),
    default: false,
    doc: "Whether new nodes wait for an operator.",
  },
  "Compute.Heartbeat.Interval": {
    schema: duration(),
    default: 15_000,
    doc:
      "How often an agent wishes to beat. The policy of the server wins over it, and it never exceeds a third of " +
      "what makes a node unhealthy.",
    aliases: ["HEARTBEAT_INTERVAL"],
  },
  "Orchestrator.Address": {
    schema: address(),
    default: { host: "::1", port: 7700 },
    doc: "Where to listen.",
  },
  "Compute.Labels": { schema: stringMap(), default: { zone: "a", "x y": "true" }, doc: "Labels." },
  "Compute.Disks": { schema: list(text()), default: ["/", "/data"], doc: "Disks." },
  "Store.Url": { schema: optional(text()), default: undefined, doc: "The Postgres to use." },
  LogLevel: { schema: text(), default: "info", doc: "What is written." },
});

describe("printDefaultYaml()", () => {
  it("should explain every key, grouped by section", () => {
    expect(printDefaultYaml(KEYS)).toBe(`# What is written.
LogLevel: info

Orchestrator:
  # Where to listen.
  Address: "[::1]:7700"
  NodeManager:
    # Whether new nodes wait for an operator.
    ManualApproval: false

Compute:
  # Labels.
  Labels:
    zone: a
    x y: true
  # Disks.
  Disks:
    - /
    - /data
  Heartbeat:
    # How often an agent wishes to beat. The policy of the server wins over it, and it never
    # exceeds a third of what makes a node unhealthy.
    # Also as: HEARTBEAT_INTERVAL.
    Interval: 15s

Store:
  # The Postgres to use.
  # Url:
`);
  });

  it("should load as the defaults", () => {
    const file = { name: "default.yaml", text: printDefaultYaml(KEYS) };
    const printed = loadConfig({ keys: KEYS, file });
    const plain = loadConfig({ keys: KEYS });
    if (!printed.ok || !plain.ok) throw new Error(JSON.stringify(printed));
    expect(printed.config.values).toEqual(plain.config.values);
  });
});
