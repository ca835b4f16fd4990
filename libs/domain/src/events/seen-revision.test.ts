import { describe, expect, it } from "@jest/globals";
import { seenAfter } from "./seen-revision.ts";

describe("seenAfter()", () => {
  it.each([
    ["10", 10n],
    ["8", 9n],
    ["", 9n],
    ["-10", 9n],
    ["10a", 9n],
    [null, 9n],
  ])("should take the higher one of 9 and %j", (header, expected) => {
    expect(seenAfter(9n, header)).toBe(expected);
  });
});
