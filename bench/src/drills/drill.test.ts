import { describe, expect, it } from "@jest/globals";
import { resultOf } from "./drill.ts";

const WELL = {
  agents: 1_000,
  recoveredAfterMs: 2_345,
  reconnects: 1_000,
  falselyDeclared: [],
  rightlyDeclared: 2,
  reactionsAllowed: 0,
};

describe("resultOf()", () => {
  it("should pass when only nodes whose own log shows the gap were declared", () => {
    const { passed, text } = resultOf(WELL);
    expect(passed).toBe(true);
    expect(text).toContain("PASSED: 1000 agents, all HEALTHY again 2.3 s after the fault");
  });

  it.each([
    ["a node was declared falsely", { falselyDeclared: ["n1"] }],
    ["a reaction was allowed", { reactionsAllowed: 1 }],
  ])("should fail when %s", (_, change) => {
    expect(resultOf({ ...WELL, ...change }).text).toMatch(/^FAILED/);
  });
});
