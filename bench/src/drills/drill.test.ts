import { describe, expect, it } from "@jest/globals";
import { verdictOf } from "./drill.ts";

const WELL = {
  agents: 1_000,
  recoveredAfterMs: 2_345,
  reconnects: 1_000,
  falselyJudged: [],
  rightlyJudged: 2,
  reactionsAllowed: 0,
};

describe("verdictOf()", () => {
  it("should pass when only nodes whose own log shows the gap were judged", () => {
    const { passed, text } = verdictOf(WELL);
    expect(passed).toBe(true);
    expect(text).toContain("PASSED: 1000 agents, all HEALTHY again 2.3 s after the fault");
  });

  it.each([
    ["a node was judged falsely", { falselyJudged: ["n1"] }],
    ["a reaction was allowed", { reactionsAllowed: 1 }],
  ])("should fail when %s", (_, change) => {
    expect(verdictOf({ ...WELL, ...change }).text).toMatch(/^FAILED/);
  });
});
