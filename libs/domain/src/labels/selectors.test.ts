import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { parseSelector } from "./parse-selector.ts";
import { formatSelector, labelNumber, matches, type Requirement, type Selector } from "./selectors.ts";

function parsed(text: string): Selector {
  const result = parseSelector(text);
  if (!result.ok) throw new Error(result.message);
  return result.selector;
}

describe("matches()", () => {
  const labels = new Map([
    ["zone", "eu"],
    ["gpus", "8"],
    ["empty", ""],
  ]);

  it.each<[string, boolean]>([
    ["", true],
    ["zone=eu", true],
    ["zone==eu", true],
    ["zone=us", false],
    ["absent=eu", false],
    ["absent=", false],
    ["empty=", true],
    ["zone!=us", true],
    ["zone!=eu", false],
    ["absent!=eu", true],
    ["zone in (eu,us)", true],
    ["zone in (us)", false],
    ["absent in (eu)", false],
    ["absent in (,eu)", false],
    ["empty in (,eu)", true],
    ["zone notin (us)", true],
    ["zone notin (eu,us)", false],
    ["absent notin (eu)", true],
    ["zone", true],
    ["empty", true],
    ["absent", false],
    ["!absent", true],
    ["!zone", false],
    ["gpus>7", true],
    ["gpus>8", false],
    ["gpus<9", true],
    ["gpus<8", false],
    ["gpus>-1", true],
    ["zone>1", false],
    ["zone<1", false],
    ["empty<1", false],
    ["absent>1", false],
    ["absent<1", false],
    ["zone=eu,gpus>4,!absent", true],
    ["zone=eu,gpus>8", false],
  ])("should match %j: %s", (text, expected) => {
    expect(matches(parsed(text), labels)).toBe(expected);
  });
});

describe("labelNumber()", () => {
  it.each([
    ["0", 0],
    ["007", 7],
    ["999999999999999", 999_999_999_999_999],
    ["1000000000000000", null],
    ["", null],
    ["1.5", null],
    ["-1", null],
    ["1e3", null],
  ])("should read %j as %s", (text, expected) => {
    expect(labelNumber(text)).toBe(expected);
  });
});

const key = fc.constantFrom("a", "b", "in", "notin", "example.com/a");
const value = fc.constantFrom("", "x", "y", "in", "7", "10");
const values = fc.uniqueArray(value, { minLength: 1, maxLength: 4 }).map((given) => given.toSorted());
const number = fc.integer({ min: -20, max: 20 });
const requirement: fc.Arbitrary<Requirement> = fc.oneof(
  fc.record({ operator: fc.constantFrom("=" as const, "!=" as const), key, value }),
  fc.record({ operator: fc.constantFrom("in" as const, "notin" as const), key, values }),
  fc.record({ operator: fc.constantFrom("exists" as const, "!exists" as const), key }),
  fc.record({ operator: fc.constantFrom(">" as const, "<" as const), key, value: number }),
);
const anySelector = fc.array(requirement, { maxLength: 6 });

describe("formatSelector()", () => {
  it("should write one fixed form", () => {
    expect(formatSelector(parsed(" a == b , c in( y , x ,y), !d,e ,f>1"))).toBe("a=b,c in (x,y),!d,e,f>1");
  });

  it("should write a text that is read as the same selector", () => {
    fc.assert(
      fc.property(anySelector, (selector) => {
        expect(parseSelector(formatSelector(selector))).toEqual({ ok: true, selector });
      }),
    );
  });
});

describe("matches() in general", () => {
  const anyLabels = fc.dictionary(key, value).map((labels) => new Map(Object.entries(labels)));
  const opposites = [
    ["=", "!="],
    ["in", "notin"],
    ["exists", "!exists"],
  ] as const;

  it("should give opposite operators opposite answers", () => {
    fc.assert(
      fc.property(requirement, anyLabels, (one, labels) => {
        const pair = opposites.find(([operator]) => operator === one.operator);
        if (pair === undefined) return;
        const opposite = { ...one, operator: pair[1] } as Requirement;
        expect(matches([opposite], labels)).toBe(!matches([one], labels));
      }),
    );
  });

  it("should hold when each requirement holds", () => {
    fc.assert(
      fc.property(anySelector, anyLabels, (selector, labels) => {
        const each = selector.every((one) => matches([one], labels));
        expect(matches(selector, labels)).toBe(each);
      }),
    );
  });
});
