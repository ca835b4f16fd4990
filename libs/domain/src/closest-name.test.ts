import { describe, expect, it } from "@jest/globals";
import { closestName, suggestName } from "./closest-name.ts";

describe("closestName()", () => {
  it.each([
    ["web-1", ["web-12"], "web-12"],
    ["web-1", ["web-120", "web-12", "web-13"], "web-12"],
    ["web", ["db", "web-server-7"], "web-server-7"],
    ["web-12", ["web-1"], "web-1"],
    ["Web-1", ["web-1"], "web-1"],
    ["wbe-1", ["web-1"], "web-1"],
    ["gpu-07", ["gpu-17", "gpu-7"], "gpu-7"],
    ["x-1", ["x-12"], "x-12"],
  ])("should take %s for one of %j: %s", (given, candidates, name) => {
    expect(closestName(given, candidates)).toBe(name);
    expect(closestName(given, [...candidates].reverse())).toBe(name);
  });

  it.each([
    ["nothing", ["web-1", "db-1"]],
    ["w", ["web-1"]],
    ["", ["a", "web-1"]],
    ["web-1", []],
    ["web-server-7", ["web"]],
    ["web-1", ["web-2", "web-9"]],
  ])("should find nothing close to %j in %j", (given, candidates) => {
    expect(closestName(given, candidates)).toBeNull();
  });
});

describe("suggestName()", () => {
  const missing = { reason: "NODE_NOT_FOUND", message: "node web-1 not found", metadata: { node: "web-1" } } as const;

  it("should suggest the most likely name, for people and for programs", () => {
    expect(suggestName(missing, "web-1", ["web-12"])).toEqual({
      reason: "NODE_NOT_FOUND",
      message: "node web-1 not found; did you mean web-12?",
      metadata: { node: "web-1", suggestion: "web-12" },
    });
  });

  it("should leave the refusal as it is when nothing is close", () => {
    expect(suggestName(missing, "web-1", ["db-7"])).toBe(missing);
  });
});
