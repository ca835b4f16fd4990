import { describe, expect, it } from "@jest/globals";
import { editDistance } from "./key-index.ts";

describe("editDistance()", () => {
  it.each([
    ["", "", 0],
    ["", "abc", 3],
    ["abc", "abc", 0],
    ["abc", "abd", 1],
    ["abc", "ab", 1],
    ["abc", "acb", 1],
    ["manualaproval", "manualapproval", 1],
    ["kitten", "sitting", 3],
  ])("should tell %j from %j by %i", (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance);
    expect(editDistance(to, from)).toBe(distance);
  });
});
