import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type CallParty, CallPlaces } from "./call-places.ts";

const LIMITS = {
  callerCalls: 2,
  callerStreams: 3,
  arriving: 4,
  anonymous: 1,
  node: 5,
  replica: 6,
  callerWork: 7,
  nodeWork: 8,
  largeMessages: 9,
};
const ALICE: CallParty = { kind: "caller", name: "user:alice" };

function room(places: CallPlaces, party: CallParty, isStream = false): number {
  let count = 0;
  while (count < 100 && places.enter(party, isStream)) count += 1;
  return count;
}

describe("CallPlaces", () => {
  it("should limit calls and streams of each caller separately", () => {
    const places = new CallPlaces(LIMITS);
    expect(room(places, ALICE)).toBe(2);
    expect(room(places, ALICE, true)).toBe(3);
    expect(room(places, { kind: "caller", name: "user:bob" })).toBe(2);
    places.leave(ALICE, false);
    expect(room(places, ALICE)).toBe(1);
  });

  it.each([
    ["arriving", 4],
    ["anonymous", 1],
    ["node", 5],
    ["replica", 6],
  ] as const)("should count %s by address, streams and calls together", (kind, limit) => {
    const places = new CallPlaces(LIMITS);
    expect(places.enter({ kind, peer: "192.0.2.1:1" }, true)).toBe(true);
    expect(room(places, { kind, peer: "192.0.2.1:2" })).toBe(limit - 1);
    expect(room(places, { kind, peer: "192.0.2.2:2" })).toBe(limit);
    expect(room(places, { kind, peer: "[2001:db8::1]:2" })).toBe(limit);
    expect(room(places, { kind, peer: "[2001:db8::2]:2" })).toBe(0);
  });

  it("should let only known callers and nodes wait, in separate queues", () => {
    const places = new CallPlaces(LIMITS);
    const peer = "192.0.2.1:1";
    expect(places.rowOf(ALICE)).toEqual({ key: "calls user:alice", most: 7 });
    expect(places.rowOf({ kind: "node", peer })).toEqual({ key: "node 192.0.2.1", most: 8 });
    for (const kind of ["arriving", "anonymous", "replica"] as const) {
      expect(places.rowOf({ kind, peer })).toBeNull();
    }
  });

  it("should let every party wait with large messages, in its own queue", () => {
    const places = new CallPlaces(LIMITS);
    const peer = "192.0.2.1:1";
    expect(places.largeRowOf(ALICE)).toEqual({ key: "calls user:alice", most: 9 });
    for (const kind of ["node", "arriving", "anonymous", "replica"] as const) {
      expect(places.largeRowOf({ kind, peer })).toEqual({ key: `${kind} 192.0.2.1`, most: 9 });
    }
  });

  it("should never exceed the limit, lose count, or keep a party without calls", () => {
    const party = fc.oneof(
      fc.record({ kind: fc.constant("caller" as const), name: fc.constantFrom("a", "b") }),
      fc.record({
        kind: fc.constantFrom("arriving" as const, "anonymous", "node", "replica"),
        peer: fc.constantFrom("192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"),
      }),
    );
    const step = fc.record({ party, isStream: fc.boolean(), isLeaving: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const places = new CallPlaces(LIMITS);
        const held: { party: CallParty; isStream: boolean }[] = [];
        for (const { isLeaving, ...call } of steps) {
          const leaving = isLeaving ? held.pop() : undefined;
          if (leaving !== undefined) places.leave(leaving.party, leaving.isStream);
          else if (places.enter(call.party, call.isStream)) held.push(call);
        }
        for (const { party: one, isStream } of held) {
          const same = held.filter((it) => it.party === one && it.isStream === isStream);
          expect(same.length).toBeLessThanOrEqual(places.limitOf(one, isStream));
        }
        for (const { party: one, isStream } of held) places.leave(one, isStream);
        expect(places.size).toBe(0);
      }),
    );
  });
});
