import { describe, expect, it } from "@jest/globals";
import { type BrakeMode, countedSize, decideBrake, isCalm, toldCounts } from "./brake.ts";

describe("toldCounts()", () => {
  it.each([
    // Older reports still count some of the lost nodes as silent.
    [
      { size: 60, silent: 28, lost: 59, unsettled: 28 },
      { size: 60, silent: 1, lost: 59 },
    ],
    [
      { size: 52, silent: 28, lost: 59, unsettled: 0 },
      { size: 59, silent: 0, lost: 59 },
    ],
    [
      { size: 10, silent: 4, lost: 3, unsettled: 1 },
      { size: 10, silent: 4, lost: 3 },
    ],
  ])("should count each node once, example %#", (counts, expected) => {
    expect(toldCounts(counts)).toEqual(expected);
  });
});

describe("countedSize()", () => {
  it("should count a node that may be both silent and lost once", () => {
    const stale = { healthy: 6, silent: 6 };
    expect(countedSize(stale, { lost: 6, unsettled: 6 })).toBe(6);
    expect(countedSize({ healthy: 10, silent: 2 }, { lost: 3, unsettled: 0 })).toBe(13);
  });
});

describe("decideBrake()", () => {
  const cases: readonly (readonly [string, BrakeMode, number, number, number, number, BrakeMode])[] = [
    // what, before, size, silent, lost, unsettled, after
    ["no node is lost", "NORMAL", 10, 0, 0, 0, "NORMAL"],
    ["one of many is lost", "NORMAL", 100, 0, 1, 0, "NORMAL"],
    ["55 % are silent", "NORMAL", 100, 55, 0, 0, "NORMAL"],
    ["more than 55 % are silent", "NORMAL", 100, 56, 0, 0, "PARTIAL"],
    ["more than 55 % are silent or lost", "NORMAL", 100, 30, 26, 0, "PARTIAL"],
    ["all but one", "NORMAL", 100, 50, 49, 0, "PARTIAL"],
    ["all are silent", "NORMAL", 100, 100, 0, 0, "FULL"],
    ["all are silent or lost", "NORMAL", 100, 60, 40, 0, "FULL"],
    ["both of two", "NORMAL", 2, 2, 0, 0, "NORMAL"],
    ["the only one", "NORMAL", 1, 0, 1, 0, "NORMAL"],
    ["two of three", "NORMAL", 3, 0, 2, 0, "PARTIAL"],
    ["a group without nodes", "FULL", 0, 0, 0, 0, "NORMAL"],
    ["those that may be counted twice", "NORMAL", 100, 40, 40, 40, "NORMAL"],
    ["those that may be counted twice, during a storm", "PARTIAL", 100, 40, 40, 40, "PARTIAL"],
    ["the same once it is certain", "PARTIAL", 100, 0, 40, 0, "NORMAL"],
    ["some are back", "FULL", 100, 0, 80, 0, "PARTIAL"],
    ["half are back", "FULL", 100, 0, 55, 0, "NORMAL"],
    ["it grows worse", "PARTIAL", 100, 40, 60, 0, "FULL"],
    ["all may still be gone", "FULL", 100, 50, 50, 50, "FULL"],
  ];

  it.each(cases)("should decide when %s", (_, before, size, silent, lost, unsettled, after) => {
    expect(decideBrake(before, { size, silent, lost, unsettled })).toBe(after);
  });

  it("should call a group calm only when no uncertain node could make it a storm", () => {
    expect(isCalm({ size: 100, silent: 30, lost: 25, unsettled: 25 })).toBe(true);
    expect(isCalm({ size: 100, silent: 30, lost: 26, unsettled: 26 })).toBe(false);
    expect(isCalm({ size: 2, silent: 2, lost: 2, unsettled: 0 })).toBe(true);
  });
});
