import { describe, expect, it } from "@jest/globals";
import { resultOf } from "./kits-drill.ts";

describe("resultOf() for the drill of the kits", () => {
  it("should pass when only sessions have moved", () => {
    const { passed, text } = resultOf(100, 2, { "node.session.moved": 187 });
    expect(passed).toBe(true);
    expect(text).toContain("PASSED: 2 of 2 agents survived 100 kills");
  });

  it.each([
    ["a node was declared", 2, { "node.health.changed": 1 }],
    ["a reaction was allowed", 2, { "node.reactions.allowed": 1 }],
    ["an agent has ended", 1, {}],
  ])("should fail when %s", (_, alive, events) => {
    expect(resultOf(100, alive, events).text).toMatch(/^FAILED/);
  });
});
