import { describe, expect, it } from "@jest/globals";
import { policyProblems } from "@rollcall/rpc";
import { POLICIES, SERVICES } from "./routes.ts";

describe("POLICIES", () => {
  it("should have a row for each method", () => {
    expect(policyProblems(SERVICES, POLICIES)).toEqual([]);
  });

  it("should only tell callers without a role how to log in", () => {
    const open = Object.entries(POLICIES).filter(([, { caller }]) => caller === "anyone");
    expect(open.map(([method]) => method)).toEqual(["rollcall.admin.v1.AccessService/GetLoginOptions"]);
  });
});
