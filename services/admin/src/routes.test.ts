import { describe, expect, it } from "@jest/globals";
import { policyProblems } from "@rollcall/runtime";
import { POLICIES, SERVICES } from "./routes.ts";

describe("POLICIES", () => {
  it("should have a row for each method", () => {
    expect(policyProblems(SERVICES, POLICIES)).toEqual([]);
  });

  it("should ask for an operator's token everywhere", () => {
    expect(new Set(Object.values(POLICIES).map(({ caller }) => caller))).toEqual(
      new Set(["operator"]),
    );
  });
});
