import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { matchesGlob } from "./glob.ts";

describe("matchesGlob()", () => {
  it.each([
    ["*", ""],
    ["*", "anything"],
    ["gpu-*", "gpu-"],
    ["gpu-*", "gpu-7"],
    ["gpu-?", "gpu-7"],
    ["*-gpu", "a-gpu-gpu"],
    ["a*b*c", "a-b-b-c"],
    ["a**c", "abc"],
    ["node.1", "node.1"],
    ["?*", "a"],
  ])("should find that %j matches %j", (pattern, text) => {
    expect(matchesGlob(pattern, text)).toBe(true);
  });

  it.each([
    ["", "a"],
    ["gpu-?", "gpu-"],
    ["gpu-?", "gpu-77"],
    ["gpu-*", "my-gpu-7"],
    ["*-gpu", "a-gpu-7"],
    ["node.1", "nodex1"],
    ["Gpu", "gpu"],
    ["a*b*c", "a-c-b"],
  ])("should find that %j does not match %j", (pattern, text) => {
    expect(matchesGlob(pattern, text)).toBe(false);
  });

  it("should agree with a regular expression", () => {
    const word = (letters: string) => fc.string({ unit: fc.constantFrom(...letters), maxLength: 12 });
    fc.assert(
      fc.property(word("ab*?"), word("ab"), (pattern, text) => {
        const source = pattern.replaceAll("*", ".*").replaceAll("?", ".");
        expect(matchesGlob(pattern, text)).toBe(new RegExp(`^${source}$`).test(text));
      }),
    );
  });

  it("should not take for ever where a regular expression would", () => {
    expect(matchesGlob(`${"*a".repeat(60)}b`, "a".repeat(63))).toBe(false);
  });
});
