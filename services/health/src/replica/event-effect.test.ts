import { describe, expect, it } from "@jest/globals";
import { EVENT_TYPES, type EventType, isOfInterest, type Json } from "@rollcall/domain";
import { effectOf, replicaInterest } from "./event-effect.ts";

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
