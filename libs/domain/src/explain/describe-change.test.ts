import { describe, expect, it } from "@jest/globals";
import type { EventType, Json } from "../events/events.ts";
import { apiNames, describeChange } from "./describe-change.ts";
import { EVENT_CATALOGUE, EVENT_TYPES } from "./event-catalogue.ts";

const AT_MS = 1_000_000;
const told = (type: EventType, before: Json | null, after: Json | null, message = "") => ({
  ...{ type, atMs: AT_MS, reason: "REASON", message, actor: "replica:r2", before, after },
});

describe("describeChange()", () => {
  it.each<[EventType, Json | null, Json | null, string]>([
    [
      "node.reactions.allowed",
      null,
      { group: "zone=a", brake: "PARTIAL", lostSinceMs: AT_MS - 4_200 },
      "group zone=a, brake partial, lost 4.2 s before",
    ],
    [
      "node.registered",
      null,
      { membership: "APPROVED", joinToken: "t1", joinedFrom: "192.0.2.7" },
      "approved, by join token t1, from 192.0.2.7",
    ],
    [
      "node.banned",
      { membership: "APPROVED" },
      { membership: "REJECTED", banned: true },
      "approved -> rejected, banned",
    ],
    ["node.flapping.started", null, { outages: 3, withinMs: 12_000 }, "3 outages, within 12 s"],
    ["node.flapping.ended", { flappingMs: 7_200_000 }, { steadyMs: 600_000 }, "flapping for 2 h -> steady for 10 min"],
    ["node.session.moved", { replica: "r1" }, { replica: "r2" }, "moved to replica r2 without disconnecting"],
    // The event in the format of older releases.
    [
      "node.connection.changed",
      { connection: "CONNECTED" },
      { connection: "CONNECTED" },
      "moved to another replica without disconnecting",
    ],
    [
      "node.hardware.accepted",
      null,
      { hardware: { cores: 8, memoryBytes: 2 ** 34, diskBytes: 2 ** 40, gpus: ["a"] } },
      "8 cores, 16.0 GiB of memory, 1024.0 GiB of disk, 1 GPU",
    ],
    ["join.token.created", null, { maxUses: 40, nodeNamePattern: "" }, "at most 40 uses"],
    ["join.token.created", null, { nodeNamePattern: "gpu-*" }, "for nodes named gpu-*"],
    ["webhook.set", null, { host: "ops.example", selector: "" }, "at ops.example"],
    ["webhook.set", null, { host: "ops.example", selector: "zone=a" }, "at ops.example, for nodes with zone=a"],
    ["policy.health.set", null, { values: { unhealthyAfterMs: 90_000 } }, "unhealthy-after 90 s"],
  ])("should say in words what %s changed", (type, before, after, expected) => {
    expect(describeChange(told(type, before, after))).toBe(expected);
  });

  it("should leave out a state that did not change", () => {
    const after = { state: "LIVE", replacedBy: "e2" };
    expect(describeChange(told("job.execution.replaced", { state: "LIVE" }, after))).toBe("replaced by e2");
  });

  it("should name states as the API does for programs", () => {
    const event = told("node.scheduling.changed", { holds: [] }, { scheduling: "DRAINING", holds: ["DRAIN"] });
    expect(describeChange(event, apiNames)).toBe("not held -> DRAINING, held by DRAIN");
    expect(describeChange(event)).toBe("not held -> draining, held by drain");
  });

  it("should name no field of any event as programs know it", () => {
    for (const type of EVENT_TYPES) {
      const { before, after } = EVENT_CATALOGUE[type];
      const sideOf = (fields: readonly string[] | null) =>
        fields && Object.fromEntries(fields.map((name) => [name, 5]));
      const text = describeChange(told(type, sideOf(before), sideOf(after)));
      expect(`${type}: ${text}`).not.toMatch(/[a-z][A-Z]/);
    }
  });

  it("should show an event of a newer release", () => {
    expect(describeChange(told("node.approved", null, { somethingNew: "x" }))).toBe("somethingNew x");
  });
});
