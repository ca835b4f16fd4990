import { describe, expect, it } from "@jest/globals";
import { EVENT_TYPES } from "./event-catalogue.ts";
import { isOfInterest } from "./event-interest.ts";
import { effectOf, isNodeChange, mayEndWanted, replicaInterest, type WantedNodes } from "./event-meaning.ts";
import type { EventType, Json } from "./events.ts";

const SELF = "replica:me";

const event = (type: EventType, actor: string, after: Json = null) => ({
  id: "e",
  revision: 7n,
  atMs: 5,
  type,
  subject: "n1",
  actor,
  reason: "WHY",
  message: "because",
  before: null,
  after,
});

describe("effectOf()", () => {
  it.each([
    ["node.approved", "APPROVED"],
    ["node.rejected", "REJECTED"],
    ["node.banned", "REJECTED"],
    // Until it is approved again.
    ["node.unbanned", "REJECTED"],
  ] as const)("should read the membership out of %s", (type, state) => {
    expect(effectOf(event(type, "token:t"), SELF)).toEqual({
      kind: "membership",
      membership: { state, sinceMs: 5, reason: "WHY", message: "because", actor: "token:t" },
    });
  });

  it.each([
    ["node.deleted", "token:t", { kind: "removed", by: "operator" }],
    ["node.deregistered", "node:n1", { kind: "removed", by: "node" }],
    ["node.connection.changed", "replica:other", { kind: "moved" }],
    ["node.connection.changed", SELF, { kind: "none" }],
    ["node.session.moved", "replica:other", { kind: "moved" }],
    ["node.session.moved", SELF, { kind: "none" }],
    ["node.health.changed", "token:t", { kind: "none" }],
    ["node.health.changed", SELF, { kind: "none" }],
    ["node.labels.changed", "node:n1", { kind: "labels" }],
    ["node.info.changed", "node:n1", { kind: "info", digest: null }],
    ["node.registered", "node:n1", { kind: "none" }],
    ["node.scheduling.changed", "token:t", { kind: "none" }],
    ["node.key.rotation.required", "token:t", { kind: "labels" }],
    ["node.key.rotated", "node:n1", { kind: "key", fingerprint: null }],
    ["node.flapping.started", SELF, { kind: "hardware" }],
    ["node.rebooted", SELF, { kind: "hardware" }],
    ["node.hardware.degraded", SELF, { kind: "hardware" }],
    ["node.hardware.restored", SELF, { kind: "hardware" }],
    ["node.hardware.accepted", "token:t", { kind: "hardware" }],
    ["node.key.offered", "node:n1", { kind: "none" }],
    ["node.reactions.allowed", "replica:other", { kind: "none" }],
  ] as const)("should take %s by %s for what it is", (type, actor, expected) => {
    expect(effectOf(event(type, actor), SELF)).toEqual(expected);
  });

  it.each([
    [{ infoDigest: "d" }, "d"],
    [{ infoDigest: 7 }, null],
    ["d", null],
  ])("should read the digest out of %j", (after, digest) => {
    expect(effectOf(event("node.info.changed", "node:n1", after), SELF)).toEqual({
      kind: "info",
      digest,
    });
  });
});

describe("replicaInterest()", () => {
  it.each(EVENT_TYPES)("should leave out %s only where it means nothing for what the replica holds", (type) => {
    const interest = replicaInterest("me");
    const { kind } = effectOf(event(type, "replica:other"), SELF);
    expect(isOfInterest(interest, { type, displaces: "me" })).toBe(kind !== "none");
    expect(isOfInterest(interest, { type, displaces: "another" })).toBe(kind !== "none" && kind !== "moved");
  });
});

describe("mayEndWanted()", () => {
  const anyNode = { memberships: undefined, statuses: undefined, selector: [] };
  const approved = { ...anyNode, memberships: new Set(["APPROVED"]) };
  const connected = { ...anyNode, statuses: new Set(["CONNECTED"]) };
  const healthy = { ...anyNode, statuses: new Set(["HEALTHY"]) };
  const inZone = { ...anyNode, selector: [{ operator: "=", key: "zone", value: "a" }] as const };

  it.each<[EventType, Json, WantedNodes, boolean]>([
    ["node.deleted", null, anyNode, true],
    ["node.deregistered", null, anyNode, true],
    ["node.rejected", { membership: "APPROVED" }, anyNode, false],
    ["node.rejected", { membership: "APPROVED" }, approved, true],
    ["node.rejected", { membership: "PENDING" }, approved, false],
    ["node.rejected", null, approved, false],
    ["node.connection.changed", { connection: "CONNECTED" }, connected, true],
    ["node.connection.changed", { connection: "CONNECTED" }, healthy, false],
    ["node.health.changed", { health: "HEALTHY" }, healthy, true],
    ["node.labels.changed", { labels: { zone: "a" } }, inZone, true],
    ["node.labels.changed", { labels: { rack: "a" } }, inZone, false],
    ["node.registered", null, approved, false],
    ["brake.changed", null, anyNode, false],
  ])("should judge %s after %j", (type, before, wanted, expected) => {
    expect(mayEndWanted({ type, before, after: null }, wanted)).toBe(expected);
  });
});

describe("isNodeChange()", () => {
  it.each([
    ["node.registered", true],
    ["node.of.a.later.release", true],
    ["node.session.moved", false],
    ["brake.changed", false],
  ])("should judge %s", (type, expected) => {
    expect(isNodeChange(type)).toBe(expected);
  });
});
