import { describe, expect, it } from "@jest/globals";
import { parseAllDocuments } from "yaml";
import { findDeepNesting } from "./yaml-nesting.ts";

const ways: readonly [string, (levels: number) => string][] = [
  ["lists in brackets", (levels) => `a: ${"[".repeat(levels)}${"]".repeat(levels)}`],
  ["lists that are not closed", (levels) => `a: ${"[".repeat(levels)}`],
  ["JSON", (levels) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`],
  ["lists in one line", (levels) => `${"- ".repeat(levels)}x`],
  ["keys in one line", (levels) => `${"? ".repeat(levels)}x`],
  ["indented maps", (levels) => Array.from({ length: levels }, (_, at) => `${" ".repeat(at)}a:\n`).join("")],
  ["a later document", (levels) => `a: 1\n---\n${"[".repeat(levels)}${"]".repeat(levels)}`],
];

describe("findDeepNesting()", () => {
  it.each(ways)("should find %s, and accept fewer levels", (_, text) => {
    expect(findDeepNesting(text(90))).toBeNull();
    expect(findDeepNesting(text(110))).toMatchObject({ message: "values are nested more than 100 levels deep" });
  });

  it.each(ways.filter(([name]) => name !== "indented maps"))("should not exhaust the stack: %s", (_, text) => {
    expect(findDeepNesting(text(20_000))).not.toBeNull();
  });

  it("should accept brackets in texts, and any number of values side by side", () => {
    expect(findDeepNesting(`a: "${"[".repeat(20_000)}"\nb: |\n  ${"[{".repeat(20_000)}\n`)).toBeNull();
    expect(findDeepNesting("- [a, {b: [c]}]\n".repeat(5_000))).toBeNull();
    expect(findDeepNesting("a: [1]\n---\n".repeat(5_000))).toBeNull();
  });

  it("should say where it is", () => {
    const text = `name: x\nlist: ${"[".repeat(20_000)}`;
    expect(findDeepNesting(text)).toMatchObject({ line: 2, column: expect.any(Number) });
    expect(findDeepNesting(text)?.column).toBeLessThan(120);
  });

  it("should leave little enough for the library", () => {
    for (const [, text] of ways) for (const document of parseAllDocuments(text(90))) void document.toJS();
  });
});
