import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { EventType, Json, NewEvent } from "../events/events.ts";
import { EVENT_TYPES } from "./event-catalogue.ts";
import {
  EVERY_EVENT,
  type EventInterest,
  effectOf,
  isNodeChange,
  isOfInterest,
  mayEndWanted,
  NO_EVENT,
  replicaInterest,
  SESSION_EVENTS,
  unitedInterest,
  type WantedNodes,
} from "./event-meaning.ts";

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
    // The node stays rejected until it is approved again.
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
  ] as const)("should classify %s by %s", (type, actor, expected) => {
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
  ])("should evaluate %s after %j", (type, before, wanted, expected) => {
    expect(mayEndWanted({ type, before, after: null }, wanted)).toBe(expected);
  });
});

describe("isNodeChange()", () => {
  it.each([
    ["node.registered", true],
    ["node.of.a.later.release", true],
    ["node.session.moved", false],
    ["brake.changed", false],
  ])("should evaluate %s", (type, expected) => {
    expect(isNodeChange(type)).toBe(expected);
  });
});

const HEALTH: EventInterest = { types: new Set(["node.approved", "policy.health.set"]), displaced: new Set(["r1"]) };

describe("isOfInterest()", () => {
  it.each<[string, EventInterest, Pick<NewEvent, "type" | "displaces">, boolean]>([
    ["everything to who wants all", EVERY_EVENT, { type: "brake.changed" }, true],
    ["nothing to who wants none", NO_EVENT, { type: "node.approved" }, false],
    ["no session to who wants none", NO_EVENT, { type: "node.session.moved", displaces: null }, false],
    ["a type that is named", HEALTH, { type: "node.approved" }, true],
    ["no type that is not named", HEALTH, { type: "node.labels.changed" }, false],
    ["a move away from the replica", HEALTH, { type: "node.session.moved", displaces: "r1" }, true],
    ["a connection that fences the replica", HEALTH, { type: "node.connection.changed", displaces: "r1" }, true],
    ["no move away from another", HEALTH, { type: "node.session.moved", displaces: "r2" }, false],
    ["no connection that fences none", HEALTH, { type: "node.connection.changed", displaces: "" }, false],
    ["a session's event of an earlier release", HEALTH, { type: "node.connection.changed", displaces: null }, true],
    ["one without the field", HEALTH, { type: "node.connection.changed" }, true],
    ["no other event that names a replica", HEALTH, { type: "node.health.changed", displaces: "r1" }, false],
  ])("should give %s", (_, interest, event, expected) => {
    expect(isOfInterest(interest, event)).toBe(expected);
  });
});

describe("unitedInterest()", () => {
  const replica = fc.constantFrom("r1", "r2", "r3");
  const interest = fc.record({
    types: fc.option(
      fc.uniqueArray(fc.constantFrom(...EVENT_TYPES), { maxLength: 4 }).map((types) => new Set(types)),
      {
        freq: 8,
      },
    ),
    displaced: fc.uniqueArray(replica).map((replicas) => new Set(replicas)),
  });
  const event = fc.record({
    type: fc.oneof(fc.constantFrom(...EVENT_TYPES), fc.constantFrom(...SESSION_EVENTS)),
    displaces: fc.oneof(replica, fc.constantFrom("", null)),
  });

  it("should want an event if and only if one of the interests does", () => {
    fc.assert(
      fc.property(fc.array(interest, { maxLength: 4 }), event, (interests, one) => {
        expect(isOfInterest(unitedInterest(interests), one)).toBe(interests.some((it) => isOfInterest(it, one)));
      }),
    );
  });
});
