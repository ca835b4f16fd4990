import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";
import { leastMs, parseScenario, readScenarios, says } from "./scenario.ts";

const FOLDER = fileURLToPath(new URL("../../../sdk/conformance/scenarios", import.meta.url));

describe("readScenarios()", () => {
  it("should read every scenario, each with a sentence that says what it checks", async () => {
    const scenarios = await readScenarios(FOLDER);
    expect(scenarios.length).toBeGreaterThan(40);
    for (const { name, checks, steps } of scenarios) {
      expect([name, checks]).toEqual([name, expect.stringMatching(/^[A-Z].{40,}\.$/)]);
      expect(steps.some((step) => step.await !== undefined || step.quiet !== undefined)).toBe(true);
    }
  });
});

describe("parseScenario()", () => {
  const text = (more: object) => JSON.stringify({ name: "a", checks: "", steps: [], ...more });

  it.each([
    ["a misspelt step", { steps: [{ awiat: "hello" }] }],
    ["a field that there is not", { step: [] }],
    ["another name than its file", { name: "b" }],
  ])("should refuse %s", (_, more) => {
    expect(() => parseScenario("a.json", text(more))).toThrow(/^a\.json/);
  });

  it("should accept a valid scenario", () => {
    const scenario = parseScenario("a.json", text({ steps: [{ quiet: 100 }, { await: "beat", notBeforeMs: 20 }] }));
    expect(leastMs(scenario)).toBe(120);
  });
});

describe("says()", () => {
  it.each([
    [{ a: 1, b: 2 }, { a: 1 }, true],
    [{ a: [{ b: "x" }] }, { a: { "0": { b: "x" } } }, true],
    [{ a: 1 }, { b: null }, true],
    [{ a: 1 }, { a: null }, false],
    [{ a: 1 }, { a: "1" }, false],
    [undefined, { a: 1 }, false],
  ])("should compare %j with %j", (value, asked, expected) => {
    expect(says(value, asked)).toBe(expected);
  });
});
