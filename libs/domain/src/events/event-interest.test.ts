import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { EVENT_TYPES } from "./event-catalogue.ts";
import {
  EVERY_EVENT,
  type EventInterest,
  isOfInterest,
  NO_EVENT,
  SESSION_EVENTS,
  unitedInterest,
} from "./event-interest.ts";
import type { NewEvent } from "./events.ts";

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
