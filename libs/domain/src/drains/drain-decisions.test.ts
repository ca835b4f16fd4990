import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { cordon, endCordon, uncordon } from "../nodes/operator-decisions.ts";
import { deriveScheduling, type Hold } from "../states.ts";
import { nodeRecord } from "../testing/node.ts";
import type { DrainConditions, DrainIntent, DrainRequest } from "./drain.ts";
import { cancelDrain, drainNode, drainsThatBegin, endDrain, type SelectedDrain } from "./drain-decisions.ts";

const BY = { actor: "token:t", message: "new disk", atMs: 9 };
const CONDITIONS: DrainConditions = {
  ...{ deadlineMs: 60_000, force: false, ignoreDaemons: false, keepIneligible: false, maxParallel: 0 },
};
const DRAIN: DrainIntent = { ...CONDITIONS, selection: "", queued: false, reason: "earlier", actor: "token:x" };
const HELD: Hold = { kind: "DRAIN", sinceMs: 4, message: "earlier", actor: "token:x" };
const CORDON: Hold = { kind: "OPERATOR", sinceMs: 2, message: "before", actor: "token:x" };
const FLAPPING: Hold = { kind: "FLAPPING", sinceMs: 1, message: "flaps", actor: "replica:r" };

function held(...holds: readonly Hold[]) {
  return nodeRecord({ holds, scheduling: deriveScheduling(holds, 0) });
}

const NOTHING: DrainRequest = {
  ...{ deadlineMs: null, force: null, ignoreDaemons: null, keepIneligible: null, maxParallel: 0 },
};
const alone = { request: CONDITIONS, selection: "" };

describe("drainNode()", () => {
  it("should hold the node, store the intent, and write an event of both", () => {
    expect(drainNode(held(CORDON), alone, BY, null)).toMatchObject({
      ok: true,
      effects: [
        { kind: "holds", holds: [CORDON, { kind: "DRAIN", sinceMs: 9, message: "new disk", actor: "token:t" }] },
        { kind: "drain", drain: { ...CONDITIONS, selection: "", queued: false, reason: "new disk", actor: "token:t" } },
      ],
      events: [
        { type: "node.drain.started", reason: "OPERATOR_DRAINED", before: null, after: { queued: false } },
        {
          type: "node.scheduling.changed",
          reason: "NODE_DRAINING",
          before: { scheduling: "INELIGIBLE" },
          after: { scheduling: "DRAINING", holds: ["OPERATOR", "DRAIN"] },
        },
      ],
    });
  });

  it("should replace the conditions of a drain in progress, without another event of scheduling", () => {
    const again = { request: { ...CONDITIONS, force: true }, selection: "" };
    const by = { ...BY, actor: HELD.actor, message: HELD.message };
    const decided = drainNode(held(HELD), again, by, DRAIN);
    expect(decided).toMatchObject({ ok: true, effects: [{ kind: "drain", drain: { force: true } }] });
    expect(decided).toMatchObject({ events: [{ before: { force: false }, after: { force: true } }] });
  });

  it("should keep omitted conditions and the reason of the current drain, and report the changes", () => {
    const present = { ...DRAIN, deadlineMs: 5_000, ignoreDaemons: true, keepIneligible: true };
    const force = { request: { ...NOTHING, force: true }, selection: "" };
    const decided = drainNode(held(HELD), force, { ...BY, message: "" }, present);
    expect(decided).toMatchObject({
      effects: [
        { kind: "holds", holds: [{ message: "earlier" }] },
        { drain: { ...present, force: true, actor: "token:t" } },
      ],
      events: [
        {
          message: "earlier",
          before: { force: false, ignoreDaemons: true },
          after: { force: true, ignoreDaemons: true },
        },
        { message: "earlier" },
      ],
    });
    const stop = { request: { ...NOTHING, ignoreDaemons: false }, selection: "" };
    expect(drainNode(held(HELD), stop, BY, present)).toMatchObject({
      effects: [{}, { drain: { deadlineMs: 5_000, ignoreDaemons: false, keepIneligible: true, reason: "new disk" } }],
    });
  });

  it("should have defaults where there is no drain before", () => {
    expect(drainNode(held(), { request: NOTHING, selection: "" }, BY, null)).toMatchObject({
      effects: [{}, { drain: { ...CONDITIONS, deadlineMs: 3_600_000 } }],
    });
  });

  it.each<[string, Hold[], DrainIntent | null, boolean]>([
    ["wait as a new one", [], null, true],
    ["continue where it has started", [HELD], DRAIN, false],
    ["still wait where it waits", [HELD], { ...DRAIN, queued: true }, true],
    ["wait again where it was done", [{ ...HELD, drained: true }], DRAIN, true],
  ])("should let a node of a selection %s", (_, holds, before, queued) => {
    const decided = drainNode(held(...holds), { request: CONDITIONS, selection: "s" }, BY, before);
    expect(decided).toMatchObject({ ok: true });
    if (decided.ok)
      expect(decided.effects).toContainEqual(expect.objectContaining({ drain: expect.objectContaining({ queued }) }));
  });

  it("should make a drained node drain again", () => {
    const decided = drainNode(held({ ...HELD, drained: true }), alone, BY, DRAIN);
    expect(decided).toMatchObject({
      events: [{}, { before: { scheduling: "DRAINED" }, after: { scheduling: "DRAINING" } }],
    });
  });

  it("should refuse a process of the control plane", () => {
    const decided = drainNode(nodeRecord({ type: "ORCHESTRATOR" }), alone, BY, null);
    expect(decided).toMatchObject({ refusal: { reason: "NODE_IS_ORCHESTRATOR" } });
  });
});

describe("cancelDrain()", () => {
  it("should lift only the hold of the drain", () => {
    expect(cancelDrain(held(FLAPPING, HELD), BY, DRAIN)).toMatchObject({
      effects: [
        { kind: "holds", holds: [FLAPPING] },
        { kind: "drain", drain: null },
      ],
      events: [
        { type: "node.drain.cancelled", reason: "DRAIN_CANCELLED", before: { deadlineMs: 60_000 }, after: null },
        { type: "node.scheduling.changed", reason: "NODE_FLAPPING", after: { scheduling: "INELIGIBLE" } },
      ],
    });
  });

  it("should leave a cordon where the node is to stay ineligible", () => {
    const decided = cancelDrain(held(HELD), { ...BY, message: "" }, { ...DRAIN, keepIneligible: true });
    const cordoned = { kind: "OPERATOR", sinceMs: 9, message: "earlier", actor: "token:t" };
    expect(decided).toMatchObject({ effects: [{ holds: [cordoned] }, {}] });
  });

  it("should keep the cordon that there is", () => {
    const decided = cancelDrain(held(CORDON, HELD), BY, { ...DRAIN, keepIneligible: true });
    expect(decided).toMatchObject({ effects: [{ holds: [CORDON] }, {}] });
  });

  it("should turn a temporary cordon into a permanent one if the node must stay ineligible", () => {
    const timed = { ...CORDON, untilMs: 50 };
    const lasting = cancelDrain(held(timed, HELD), BY, { ...DRAIN, keepIneligible: true });
    expect(lasting).toMatchObject({ ok: true });
    if (lasting.ok) expect(lasting.effects[0]).toEqual({ kind: "holds", holds: [CORDON] });
    expect(cancelDrain(held(timed, HELD), BY, DRAIN)).toMatchObject({ effects: [{ holds: [timed] }, {}] });
  });

  it("should refuse a node that is not drained", () => {
    expect(cancelDrain(held(CORDON), BY, null)).toMatchObject({
      refusal: { reason: "NODE_NOT_DRAINING", message: "node n is not draining", metadata: { node: "n" } },
    });
  });
});

describe("endDrain()", () => {
  it("should show the node as drained, once", () => {
    const ended = endDrain(held(HELD), true, { actor: "scheduler:s", message: "", atMs: 20 });
    expect(ended).toMatchObject({
      effects: [{ kind: "holds", holds: [{ ...HELD, drained: true }] }],
      events: [{ reason: "NODE_DRAINED", actor: "scheduler:s", after: { scheduling: "DRAINED", holds: ["DRAIN"] } }],
    });
    expect(endDrain(held({ ...HELD, drained: true }), true, BY)).toBeNull();
    expect(endDrain(held({ ...HELD, drained: true }), false, BY)).toBeNull();
    expect(endDrain(held(CORDON), true, BY)).toBeNull();
  });

  it("should show the node as unconfirmed, once, and as drained once it has confirmed", () => {
    const unconfirmed: Hold = { ...HELD, drained: true, unconfirmed: true };
    expect(endDrain(held(HELD), false, BY)).toMatchObject({
      effects: [{ kind: "holds", holds: [unconfirmed] }],
      events: [{ after: { scheduling: "UNCONFIRMED", holds: ["DRAIN"] } }],
    });
    expect(endDrain(held(unconfirmed), false, BY)).toBeNull();
    expect(endDrain(held(unconfirmed), true, BY)).toMatchObject({
      effects: [{ kind: "holds", holds: [{ ...HELD, drained: true }] }],
      events: [{ before: { scheduling: "UNCONFIRMED" }, after: { scheduling: "DRAINED" } }],
    });
  });
});

describe("drainsThatBegin()", () => {
  const drain = (nodeId: string, state: "waits" | "runs" | "done", maxParallel = 2): SelectedDrain => ({
    ...{ nodeId, maxParallel },
    ...{ queued: state === "waits", drained: state === "done" },
  });

  it.each([
    ["as many as may at first", [drain("c", "waits"), drain("b", "waits"), drain("a", "waits")], ["a", "b"]],
    ["one for each that is done", [drain("a", "done"), drain("b", "runs"), drain("c", "waits")], ["c"]],
    ["none while as many continue", [drain("a", "runs"), drain("b", "runs"), drain("c", "waits")], []],
    ["all where there is no limit", [drain("a", "waits", 0), drain("b", "waits", 0)], ["a", "b"]],
    ["none of none", [], []],
  ])("should begin %s", (_, drains, expected) => {
    expect(drainsThatBegin(drains)).toEqual(expected);
  });

  it("should never drain more nodes than allowed, and leave none waiting forever", () => {
    const states = fc.constantFrom("waits" as const, "runs" as const, "done" as const);
    fc.assert(
      fc.property(fc.array(states, { maxLength: 12 }), fc.integer({ min: 1, max: 4 }), (list, most) => {
        const drains = list.map((state, at) => drain(`n${at}`, state, most));
        const begun = drainsThatBegin(drains).length;
        const running = list.filter((state) => state === "runs").length;
        const waiting = list.filter((state) => state === "waits").length;
        expect(running + begun).toBeLessThanOrEqual(Math.max(most, running));
        if (running < most && waiting > 0) expect(begun).toBeGreaterThan(0);
      }),
    );
  });
});

describe("cordon() with a time", () => {
  it("should keep the time in the hold, and take another one", () => {
    const placed = { kind: "OPERATOR", sinceMs: 9, message: "new disk", actor: "token:t", untilMs: 50 } as const;
    expect(cordon(held(), BY, 50)).toMatchObject({ effects: [{ holds: [placed] }] });
    expect(cordon(held(placed), BY, 50)).toMatchObject({ refusal: { reason: "NODE_ALREADY_CORDONED" } });
    expect(cordon(held(placed), BY, 70)).toMatchObject({ effects: [{ holds: [{ ...placed, untilMs: 70 }] }] });
    const lasting = cordon(held(placed), BY);
    expect(lasting).toMatchObject({ ok: true });
    if (lasting.ok) expect(JSON.stringify(lasting.effects)).not.toContain("untilMs");
  });

  it.each([
    [49, false],
    [50, true],
    [51, true],
  ])("should have ended at %d: %p", (nowMs, ended) => {
    expect(endCordon(held({ ...CORDON, untilMs: 50 }), nowMs) !== null).toBe(ended);
  });

  it("should expire with an event of the system, and keep a permanent one", () => {
    expect(endCordon(held(FLAPPING, { ...CORDON, untilMs: 50 }), 50)).toMatchObject({
      effects: [{ holds: [FLAPPING] }],
      events: [
        { type: "node.scheduling.changed", actor: "system", message: "cordoned until 1970-01-01T00:00:00.050Z" },
      ],
    });
    expect(endCordon(held(CORDON), 50)).toBeNull();
  });
});

describe("uncordon() of a node that drains", () => {
  it("should end the drain too", () => {
    expect(uncordon(held(FLAPPING, CORDON, HELD), BY, DRAIN)).toMatchObject({
      effects: [
        { kind: "holds", holds: [FLAPPING] },
        { kind: "drain", drain: null },
      ],
      events: [{ type: "node.drain.cancelled" }, { type: "node.scheduling.changed" }],
    });
  });
});
