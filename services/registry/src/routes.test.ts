import { describe, expect, it } from "@jest/globals";
import { policyProblems } from "@rollcall/rpc";
import { POLICIES, SERVICES } from "./routes.ts";

describe("POLICIES", () => {
  it("should have a row for each method", () => {
    expect(policyProblems(SERVICES, POLICIES)).toEqual([]);
  });

  it("should require a token, except where nodes prove their identity", () => {
    const tokenless = Object.entries(POLICIES)
      .filter(([, { caller }]) => caller === "anyone" || caller === "node")
      .map(([method]) => method.split("/")[1]);
    expect(tokenless.sort()).toEqual([
      "CreateChallenge",
      "DeregisterNode",
      "RegisterNode",
      "RotateNodeKey",
      "UpdateNodeInfo",
    ]);
  });
});
