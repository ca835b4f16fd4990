import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { HealthState } from "../states.ts";
import {
  type Loss,
  type LossChange,
  lossAfterClearedMark,
  lossAfterMark,
  lossAfterObservation,
  lossAfterRelease,
  mayHaveReaction,
  NO_LOSS,
  type ObservedLoss,
  type Reaction,
  reactionStep,
} from "./reaction.ts";

const MISSED = "HEARTBEATS_MISSED";
const LEFT = "AGENT_SHUTDOWN";
const BEAT = "HEARTBEAT_RECEIVED";

describe("reactionStep()", () => {
  const cases: readonly (readonly [HealthState, Reaction | null, HealthState, string, string | null])[] = [
    ["HEALTHY", null, "UNHEALTHY", MISSED, "lost"],
    ["HEALTHY", null, "UNKNOWN", MISSED, "lost"],
    ["HEALTHY", null, "UNHEALTHY", LEFT, "left"],
    ["UNHEALTHY", "PENDING", "UNKNOWN", MISSED, null],
    ["UNHEALTHY", "PENDING", "UNHEALTHY", LEFT, "left"],
    ["UNHEALTHY", "PENDING", "HEALTHY", BEAT, "back"],
    ["UNHEALTHY", "ALLOWED", "HEALTHY", BEAT, "back"],
    ["UNHEALTHY", "ALLOWED", "UNKNOWN", MISSED, null],
    ["UNHEALTHY", "ALLOWED", "UNHEALTHY", LEFT, null],
    // An operator marked the node, and it has been given no work since.
    ["HEALTHY", "ALLOWED", "UNHEALTHY", MISSED, null],
    ["UNKNOWN", null, "UNKNOWN", MISSED, null],
    ["UNKNOWN", null, "UNHEALTHY", LEFT, null],
    ["UNKNOWN", null, "HEALTHY", BEAT, "back"],
    ["HEALTHY", null, "HEALTHY", BEAT, null],
  ];

  it.each(cases)("should take %s with %s to %s for %s as %s", (detected, reaction, state, reason, step) => {
    expect(reactionStep({ detected, reaction }, { state, reason })).toBe(step);
  });
});

const LOSS: Loss = { reaction: "PENDING", number: 7, group: "zone=a", sinceMs: 5 };
const NODE = { id: "n", type: "COMPUTE", membership: { state: "APPROVED" } } as const;

function observe(changes: Partial<ObservedLoss>) {
  return lossAfterObservation({
    nodeId: "n",
    before: { detected: "HEALTHY", loss: NO_LOSS },
    detected: { state: "UNHEALTHY", reason: MISSED, message: "m", actor: "replica:r" },
    isShownHealthy: false,
    mayHaveReaction: true,
    group: "zone=a",
    nowMs: 9,
    ...changes,
  });
}

describe("mayHaveReaction()", () => {
  it.each([
    ["COMPUTE", "APPROVED", true],
    ["COMPUTE", "PENDING", false],
    ["COMPUTE", "REJECTED", false],
    ["ORCHESTRATOR", "APPROVED", false],
  ] as const)("should decide on %s %s", (type, state, expected) => {
    expect(mayHaveReaction({ type, membership: { state } })).toBe(expected);
  });
});

describe("lossAfterObservation()", () => {
  it("should number a loss, and leave the reaction to the brake", () => {
    expect(observe({})).toEqual({
      loss: { reaction: "PENDING", number: "next", group: "zone=a", sinceMs: 9 },
      event: null,
    });
  });

  it("should ignore a node that cannot have a reaction", () => {
    expect(observe({ mayHaveReaction: false })).toEqual({ loss: NO_LOSS, event: null });
    const leaving = { state: "UNHEALTHY", reason: LEFT, message: "", actor: "a" } as const;
    expect(observe({ mayHaveReaction: false, detected: leaving })).toEqual({ loss: NO_LOSS, event: null });
  });

  it("should allow the reaction to a goodbye at once, of a node that was lost before too", () => {
    const leaving = { state: "UNHEALTHY", reason: LEFT, message: "bye", actor: "node:n" } as const;
    expect(observe({ detected: leaving })).toMatchObject({
      loss: { reaction: "ALLOWED", number: null, group: null, sinceMs: 9 },
      event: {
        type: "node.reactions.allowed",
        reason: "AGENT_SHUTDOWN",
        message: "bye",
        actor: "node:n",
        after: { group: "zone=a", brake: "NORMAL", lostSinceMs: 9 },
      },
    });
    const lost = observe({ detected: leaving, before: { detected: "UNHEALTHY", loss: LOSS } });
    expect(lost).toMatchObject({ loss: { sinceMs: 5 }, event: { after: { lostSinceMs: 5 } } });
  });

  it("should forget a loss once the node is shown as HEALTHY", () => {
    const before = { detected: "UNHEALTHY", loss: LOSS } as const;
    const back = { state: "HEALTHY", reason: BEAT, message: "", actor: "a" } as const;
    expect(observe({ before, detected: back, isShownHealthy: true })).toEqual({ loss: NO_LOSS, event: null });
  });

  it("should keep an allowed reaction while a mark hides that the node is back", () => {
    const back = { state: "HEALTHY", reason: BEAT, message: "", actor: "a" } as const;
    const hidden = (loss: Loss) => observe({ before: { detected: "UNHEALTHY", loss }, detected: back }).loss;
    expect(hidden(LOSS)).toEqual({ reaction: null, number: null, group: null, sinceMs: 5 });
    expect(hidden({ ...LOSS, reaction: "ALLOWED" })).toEqual({ ...NO_LOSS, reaction: "ALLOWED", sinceMs: 5 });
    expect(hidden(NO_LOSS)).toBe(NO_LOSS);
  });

  it("should do nothing if only the connection changes", () => {
    expect(observe({ before: { detected: "UNHEALTHY", loss: LOSS }, detected: null }).loss).toBe(LOSS);
  });

  it("should keep the store's constraints, and allow each loss once, under random events", () => {
    const health = fc.constantFrom<HealthState>("HEALTHY", "UNHEALTHY", "UNKNOWN");
    const step = fc.record({
      kind: fc.constantFrom("observe", "mark", "clear", "release", "drop"),
      state: health,
      reason: fc.constantFrom(MISSED, LEFT),
      isMarked: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let loss: Loss = NO_LOSS;
        let detected: HealthState = "HEALTHY";
        let numbers = 0;
        let isAllowed = false;
        for (const [at, { kind, state, reason, isMarked }] of steps.entries()) {
          const by = { actor: "a", message: "", atMs: at };
          let change: LossChange = { loss, event: null };
          if (kind === "observe") {
            const isShownHealthy = state === "HEALTHY" && !isMarked;
            const found = { state, reason: state === "HEALTHY" ? BEAT : reason, message: "", actor: "a" };
            change = observe({ before: { detected, loss }, detected: found, isShownHealthy, nowMs: at });
            detected = state;
          } else if (kind === "mark") change = lossAfterMark({ ...NODE, loss }, by);
          else if (kind === "clear") change = { loss: lossAfterClearedMark(loss, detected), event: null };
          else if (kind === "drop") change = { loss: NO_LOSS, event: null };
          else if (loss.reaction === "PENDING") change = { loss: lossAfterRelease(loss, true), event: null };
          // An event of a change allows the reaction. A reaction that is already allowed must not be allowed again. (A
          // release by the brake writes its event elsewhere.)
          if (change.event !== null) expect(isAllowed).toBe(false);
          if (change.event !== null) expect(change.loss.reaction).toBe("ALLOWED");
          const { number } = change.loss;
          if (number === "next") numbers += 1;
          loss = { ...change.loss, number: number === "next" ? numbers : number };
          isAllowed = loss.reaction === "ALLOWED";
          // The store's constraints.
          expect(loss.number === null).toBe(loss.group === null);
          if (loss.reaction === "PENDING") expect(loss.number).not.toBeNull();
          if (loss.reaction !== null) expect(loss.sinceMs).not.toBeNull();
        }
      }),
    );
  });
});

describe("lossAfterMark()", () => {
  const by = { actor: "token:t", message: "smells", atMs: 9 };

  it("should allow the reaction, with the loss as it stands", () => {
    expect(lossAfterMark({ ...NODE, loss: NO_LOSS }, by)).toMatchObject({
      loss: { ...NO_LOSS, reaction: "ALLOWED", sinceMs: 9 },
      event: { reason: "OPERATOR_MARKED", actor: "token:t", message: "smells", after: { lostSinceMs: 9 } },
    });
    expect(lossAfterMark({ ...NODE, loss: LOSS }, by)).toMatchObject({
      loss: { ...LOSS, reaction: "ALLOWED" },
      event: { after: { group: "zone=a", lostSinceMs: 5 } },
    });
  });

  it("should do nothing where it was allowed before, or no reaction can be", () => {
    const allowed: Loss = { ...LOSS, reaction: "ALLOWED" };
    expect(lossAfterMark({ ...NODE, loss: allowed }, by)).toEqual({ loss: allowed, event: null });
    const pending = { ...NODE, membership: { state: "PENDING" }, loss: NO_LOSS } as const;
    expect(lossAfterMark(pending, by)).toEqual({ loss: NO_LOSS, event: null });
  });
});

describe("lossAfterClearedMark()", () => {
  it("should end the reaction to a node that was detected to be HEALTHY, and to no other", () => {
    const allowed: Loss = { ...NO_LOSS, reaction: "ALLOWED", sinceMs: 5 };
    expect(lossAfterClearedMark(allowed, "HEALTHY")).toEqual(NO_LOSS);
    expect(lossAfterClearedMark(allowed, "UNHEALTHY")).toBe(allowed);
    expect(lossAfterClearedMark(NO_LOSS, "HEALTHY")).toBe(NO_LOSS);
  });
});

describe("lossAfterRelease()", () => {
  it("should allow a pending reaction, and drop that of a node that is no longer approved", () => {
    expect(lossAfterRelease(LOSS, true)).toEqual({ ...LOSS, reaction: "ALLOWED" });
    expect(lossAfterRelease(LOSS, false)).toEqual(NO_LOSS);
  });
});

describe("each part of a loss separately", () => {
  const PARTS: readonly Loss[] = [
    { ...NO_LOSS, reaction: "ALLOWED" },
    { ...NO_LOSS, number: 7 },
    { ...NO_LOSS, group: "zone=a" },
    { ...NO_LOSS, sinceMs: 5 },
  ];

  it.each(PARTS)("should be forgotten once the node is shown as HEALTHY: %j", (loss) => {
    expect(observe({ before: { detected: "UNHEALTHY", loss }, isShownHealthy: true }).loss).toBe(NO_LOSS);
  });

  it("should be the same object where there is none", () => {
    const none = { ...NO_LOSS };
    expect(observe({ before: { detected: "UNHEALTHY", loss: none }, isShownHealthy: true }).loss).toBe(none);
  });

  it("should keep a number without a reaction for a node that is back unseen no longer than that", () => {
    const back = { state: "HEALTHY", reason: BEAT, message: "", actor: "a" } as const;
    const hidden = (loss: Loss) => observe({ before: { detected: "UNHEALTHY", loss }, detected: back }).loss;
    expect(hidden({ ...NO_LOSS, number: 7, group: "g" })).toEqual({ ...NO_LOSS, sinceMs: 9 });
    expect(hidden({ ...NO_LOSS, reaction: "ALLOWED" })).toEqual({ ...NO_LOSS, reaction: "ALLOWED", sinceMs: 9 });
  });

  it("should end with a cleared mark", () => {
    expect(lossAfterClearedMark({ ...NO_LOSS, sinceMs: 5 }, "HEALTHY")).toEqual(NO_LOSS);
    const untimed: Loss = { ...NO_LOSS, reaction: "ALLOWED" };
    expect(lossAfterClearedMark(untimed, "HEALTHY")).toEqual(NO_LOSS);
    const numbered: Loss = { ...NO_LOSS, number: 7, group: "g" };
    expect(lossAfterClearedMark(numbered, "HEALTHY")).toBe(numbered);
  });

  it("should be allowed by a mark without a group where there is none", () => {
    expect(lossAfterMark({ ...NODE, loss: NO_LOSS }, { actor: "a", message: "", atMs: 1 }).event).toMatchObject({
      after: { brake: "NORMAL", lostSinceMs: 1 },
    });
  });
});
