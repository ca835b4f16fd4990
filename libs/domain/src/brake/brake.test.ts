import { describe, expect, it } from "@jest/globals";
import { type BrakeMode, decideBrake, isCalm } from "./brake.ts";

describe("decideBrake()", () => {
  const cases: readonly (readonly [
    string,
    BrakeMode,
    number,
    number,
    number,
    number,
    BrakeMode,
  ])[] = [
    // what, before, size, silent, lost, unsettled, after
    ["nobody is gone", "NORMAL", 10, 0, 0, 0, "NORMAL"],
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
    ["a group that is no more", "FULL", 0, 0, 0, 0, "NORMAL"],
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

  it("should call a group calm only when nothing that is uncertain could make it a storm", () => {
    expect(isCalm({ size: 100, silent: 30, lost: 25, unsettled: 25 })).toBe(true);
    expect(isCalm({ size: 100, silent: 30, lost: 26, unsettled: 26 })).toBe(false);
    expect(isCalm({ size: 2, silent: 2, lost: 2, unsettled: 0 })).toBe(true);
  });
});
