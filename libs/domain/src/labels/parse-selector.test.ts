import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { MAX_SELECTOR_CONDITIONS, MAX_SELECTOR_LENGTH, parseSelector } from "./parse-selector.ts";
import type { Selector } from "./selectors.ts";

describe("parseSelector()", () => {
  it.each<[string, Selector]>([
    ["", []],
    ["  ", []],
    ["a=b", [{ operator: "=", key: "a", value: "b" }]],
    ["a==b", [{ operator: "=", key: "a", value: "b" }]],
    [" a = b ", [{ operator: "=", key: "a", value: "b" }]],
    ["a=", [{ operator: "=", key: "a", value: "" }]],
    [
      "a=,b",
      [
        { operator: "=", key: "a", value: "" },
        { operator: "exists", key: "b" },
      ],
    ],
    ["a!=b", [{ operator: "!=", key: "a", value: "b" }]],
    ["a in (x)", [{ operator: "in", key: "a", values: ["x"] }]],
    ["a in(y,x,y)", [{ operator: "in", key: "a", values: ["x", "y"] }]],
    ["a in (x,)", [{ operator: "in", key: "a", values: ["", "x"] }]],
    ["a notin ( x , y )", [{ operator: "notin", key: "a", values: ["x", "y"] }]],
    ["a", [{ operator: "exists", key: "a" }]],
    ["!a", [{ operator: "!exists", key: "a" }]],
    ["! a", [{ operator: "!exists", key: "a" }]],
    ["a>1", [{ operator: ">", key: "a", value: 1 }]],
    ["a < -1", [{ operator: "<", key: "a", value: -1 }]],
    ["a>-0", [{ operator: ">", key: "a", value: 0 }]],
    ["in in (in)", [{ operator: "in", key: "in", values: ["in"] }]],
    [
      "example.com/a=b,c",
      [
        { operator: "=", key: "example.com/a", value: "b" },
        { operator: "exists", key: "c" },
      ],
    ],
  ])("should read %j", (text, selector) => {
    expect(parseSelector(text)).toEqual({ ok: true, selector });
  });

  it.each<[string, number, string]>([
    [",", 0, 'expected a label key at character 1, found ","'],
    ["a,", 2, "expected a label key at character 3, found the end"],
    ["a,,b", 2, 'expected a label key at character 3, found ","'],
    ["=b", 0, 'expected a label key at character 1, found "="'],
    ["-a=b", 0, 'expected a label key at character 1, found "-a"'],
    ["!", 1, "expected a label key at character 2, found the end"],
    ["!!a", 1, 'expected a label key at character 2, found "!"'],
    ["!a=b", 2, 'expected a comma or the end at character 3, found "="'],
    ["a b", 2, 'expected one of =, ==, !=, in, notin, >, <, a comma or the end at character 3, found "b"'],
    ["a=b c", 4, 'expected a comma or the end at character 5, found "c"'],
    ["a===b", 3, 'expected a label value at character 4, found "="'],
    ["a=-b", 2, 'expected a label value at character 3, found "-b"'],
    ["a in", 4, 'expected "(" at character 5, found the end'],
    ["a in x", 5, 'expected "(" at character 6, found "x"'],
    ["a in ()", 6, 'expected a label value at character 7, found ")"'],
    ["a in (x", 7, 'expected a comma or ")" at character 8, found the end'],
    ["a in (x y)", 8, 'expected a comma or ")" at character 9, found "y"'],
    ["a in (x))", 8, 'expected a comma or the end at character 9, found ")"'],
    ["a>", 2, "expected a whole number of at most 15 digits at character 3, found the end"],
    ["a>x", 2, 'expected a whole number of at most 15 digits at character 3, found "x"'],
    ["a>1.5", 2, 'expected a whole number of at most 15 digits at character 3, found "1.5"'],
    ["a>=1", 2, 'expected a whole number of at most 15 digits at character 3, found "="'],
  ])("should refuse %j at %d: %s", (text, position, message) => {
    expect(parseSelector(text)).toEqual({ ok: false, position, message });
  });

  it("should read the longest selector and refuse one that is longer", () => {
    const longest = `a in (${"b,".repeat(MAX_SELECTOR_LENGTH / 2 - 4)}b)`;
    expect(longest).toHaveLength(MAX_SELECTOR_LENGTH);
    expect(parseSelector(longest).ok).toBe(true);
    expect(parseSelector(`${longest}c`)).toMatchObject({ ok: false, position: 4096 });
  });

  it("should read as many conditions as a selector has, and refuse one more where it begins", () => {
    const most = Array.from({ length: MAX_SELECTOR_CONDITIONS }, () => "a").join(",");
    expect(parseSelector(most).ok).toBe(true);
    const message = `a selector has at most ${MAX_SELECTOR_CONDITIONS} conditions`;
    expect(parseSelector(`${most},b`)).toEqual({ ok: false, message, position: most.length + 1 });
  });

  it("should answer any text, and point into it when it refuses", () => {
    const fragment = fc.oneof(
      fc.constantFrom("a", "in", "notin", "=", "==", "!", "!=", "(", ")", ",", ">", "<", " ", "1"),
      fc.string({ maxLength: 3 }),
    );
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 12 }), (fragments) => {
        const text = fragments.join("");
        const result = parseSelector(text);
        if (result.ok) return;
        expect(result.position).toBeGreaterThanOrEqual(0);
        expect(result.position).toBeLessThanOrEqual(text.length);
        expect(result.message).toContain(`at character ${result.position + 1}`);
      }),
      { numRuns: 1000 },
    );
  });
});
