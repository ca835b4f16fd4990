import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  changeOperatorLabels,
  checkAgentLabels,
  checkLabelChange,
  effectiveLabels,
  isLabelKey,
  isLabelValue,
  type Label,
  type LabelTier,
} from "./labels.ts";

describe("effectiveLabels()", () => {
  it("should let the later tier win and list the values that it overrides", () => {
    const labels: readonly Label[] = [
      { key: "zone", value: "from-agent", tier: "agent" },
      { key: "zone", value: "from-operator", tier: "operator" },
      { key: "rack", value: "r1", tier: "agent" },
      { key: "zone", value: "from-token", tier: "token" },
    ];

    expect(effectiveLabels(labels)).toEqual([
      { key: "rack", value: "r1", tier: "agent", overrides: [] },
      {
        key: "zone",
        value: "from-operator",
        tier: "operator",
        overrides: [
          { tier: "token", value: "from-token" },
          { tier: "agent", value: "from-agent" },
        ],
      },
    ]);
  });

  it("should not depend on the order of labels, nor lose any", () => {
    const tiers: readonly LabelTier[] = ["agent", "token", "operator"];
    const label = fc.record({
      key: fc.constantFrom("a", "b", "c", "A"),
      value: fc.constantFrom("x", "y"),
      tier: fc.constantFrom(...tiers),
    });
    const labels = fc.uniqueArray(label, { selector: ({ key, tier }) => `${key}/${tier}` });
    fc.assert(
      fc.property(labels, (given) => {
        const effective = effectiveLabels(given);
        expect(effectiveLabels(given.toReversed())).toEqual(effective);
        for (const { key, tier, overrides } of effective) {
          const ranks = [tier, ...overrides.map((other) => other.tier)].map((t) => tiers.indexOf(t));
          expect(ranks).toEqual(ranks.toSorted((left, right) => right - left));
          expect(ranks.length).toBe(given.filter((other) => other.key === key).length);
        }
        expect(effective.map(({ key }) => key)).toEqual([...new Set(given.map(({ key }) => key))].sort());
      }),
    );
  });
});

describe("isLabelKey()", () => {
  it.each(["a", "A.b_c-9", "example.com/a", "a.b-c.d/x", "x".repeat(63)])("should accept %s", (text) => {
    expect(isLabelKey(text)).toBe(true);
  });

  it.each([
    "",
    "-a",
    "a-",
    "a b",
    "/a",
    "a/",
    "a/b/c",
    "Example.com/a",
    "a..b/c",
    "a_b/c",
    "x".repeat(64),
    `${"x".repeat(64)}/a`,
    `${"x.".repeat(127)}/a`,
  ])("should refuse %j", (text) => {
    expect(isLabelKey(text)).toBe(false);
  });

  it("should accept a domain of 253 characters and none of 254", () => {
    const domain = `${"x.".repeat(126)}x`;

    expect(isLabelKey(`${domain}/a`)).toBe(true);
    expect(isLabelKey(`x${domain}/a`)).toBe(false);
  });
});

describe("isLabelValue()", () => {
  it.each(["", "a", "A.b_c-9", "x".repeat(63)])("should accept %j", (text) => {
    expect(isLabelValue(text)).toBe(true);
  });

  it.each(["-", "a-", ".a", "a b", "a/b", "a\n", "x".repeat(64)])("should refuse %j", (text) => {
    expect(isLabelValue(text)).toBe(false);
  });
});

describe("checkAgentLabels()", () => {
  it("should find nothing wrong with good labels", () => {
    expect(checkAgentLabels({ zone: "eu", "example.com/rack": "", gpu: "h100" })).toEqual([]);
  });

  it("should find everything at once", () => {
    const violations = checkAgentLabels({
      "rollcall.io/type": "x",
      "bad key": "bad value",
      ok: "-",
    });

    expect(violations.map(({ field }) => field)).toEqual([
      'labels["rollcall.io/type"]',
      'labels["bad key"]',
      'labels["bad key"]',
      'labels["ok"]',
    ]);
  });

  it("should say that a key is the control plane's own", () => {
    expect(checkAgentLabels({ "rollcall.io/group": "x" })).toEqual([
      {
        field: 'labels["rollcall.io/group"]',
        description: "keys with the prefix rollcall.io/ are reserved for the control plane",
      },
    ]);
  });

  it.each([
    [64, 0],
    [65, 1],
  ])("should find with %d labels %d violations", (count, violations) => {
    const labels = Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));

    expect(checkAgentLabels(labels)).toHaveLength(violations);
  });

  it("should not repeat a long key whole", () => {
    const [violation] = checkAgentLabels({ ["x".repeat(10_000)]: "v" });

    expect(violation?.field.length).toBeLessThan(100);
  });
});

describe("checkLabelChange()", () => {
  it("should find nothing wrong with good labels, and with the group", () => {
    const set = { zone: "a", "example.com/rack": "", "rollcall.io/group": "gold" };
    expect(checkLabelChange({ set, remove: ["old"] })).toEqual([]);
    expect(checkLabelChange({ set: {}, remove: ["rollcall.io/group"] })).toEqual([]);
  });

  it("should find everything at once", () => {
    const set = { "rollcall.io/type": "x", "bad key": "bad value", twice: "a" };
    const violations = checkLabelChange({ set, remove: ["rollcall.io/x", "twice", ""] });
    expect(violations.map(({ field }) => field)).toEqual([
      'set["rollcall.io/type"]',
      'set["bad key"]',
      'set["bad key"]',
      "remove[0]",
      "remove[1]",
      "remove[2]",
    ]);
  });

  it("should refuse a change of nothing", () => {
    expect(checkLabelChange({ set: {}, remove: [] })).toHaveLength(1);
  });
});

describe("changeOperatorLabels()", () => {
  it("should change only operator labels", () => {
    const labels: readonly Label[] = [
      { key: "a", value: "1", tier: "agent" },
      { key: "a", value: "2", tier: "operator" },
      { key: "b", value: "3", tier: "operator" },
      { key: "c", value: "4", tier: "token" },
    ];
    const change = { set: { c: "5", a: "6" }, remove: ["b", "nothing"] };
    expect(changeOperatorLabels(labels, change)).toEqual([
      { key: "a", value: "6", tier: "operator" },
      { key: "c", value: "5", tier: "operator" },
    ]);
  });
});
