import { describe, expect, it } from "@jest/globals";
import { freezeBrake, releaseBrake } from "./brake-orders.ts";
import type { BrakeRow } from "./brake-plan.ts";

const BY = { actor: "token:t", message: "why" };
const FROZEN = { sinceMs: 1, actor: "token:x", reason: "storm" };
const row = (changes: Partial<BrakeRow> = {}): BrakeRow => ({
  ...{ group: "zone=a", mode: "FULL", sinceMs: 0, size: 3, windowLoss: 0, frozen: null, orders: 0, followed: 0 },
  ...{ orderedLoss: 0, orderedBy: "", orderReason: "" },
  ...changes,
});

describe("freezeBrake()", () => {
  it("should freeze a brake once, with its event", () => {
    expect(freezeBrake(row(), BY)).toMatchObject({
      effects: [{ kind: "freeze", actor: "token:t", reason: "why" }],
      events: [{ subject: "zone=a", reason: "OPERATOR_FROZEN", before: { brake: "FULL" }, after: { brake: "FROZEN" } }],
    });
    expect(freezeBrake(row({ frozen: FROZEN }), BY)).toMatchObject({
      refusal: {
        reason: "BRAKE_ALREADY_FROZEN",
        message: "the brake of zone=a was already frozen by token:x: storm",
        metadata: { group: "zone=a", actor: "token:x" },
      },
    });
  });
});

describe("releaseBrake()", () => {
  const release = (changes: Partial<BrakeRow>, now = false, cluster: BrakeRow | null = null) => {
    const decided = releaseBrake(row(changes), { now, cluster }, BY);
    if (!decided.ok) return decided.refusal.reason;
    return [...decided.effects.map(({ kind }) => kind), ...decided.events.map(({ reason }) => reason)];
  };
  const free = row({ group: "cluster", mode: "NORMAL" });

  it.each([
    ["a frozen brake", release({ frozen: FROZEN }), ["unfreeze", "OPERATOR_RELEASED"]],
    ["a frozen brake, now", release({ frozen: FROZEN }, true), ["release-all", "unfreeze", "OPERATOR_RELEASED"]],
    ["a brake that is not frozen, now", release({}, true, free), ["release-all"]],
    ["a brake that is not frozen", release({}), "BRAKE_NOT_FROZEN"],
    ["a group of a frozen cluster, now", release({}, true, { ...free, frozen: FROZEN }), "BRAKE_CLUSTER_FROZEN"],
    ["a frozen group of a frozen cluster", release({ frozen: FROZEN }), ["unfreeze", "OPERATOR_RELEASED"]],
  ])("should decide on %s", (_, decided, expected) => {
    expect(decided).toEqual(expected);
  });
});
