import { describe, expect, it } from "@jest/globals";
import { exceededQuota, type OwnerUsage } from "./owner-quota.ts";

const QUOTA = { jobs: 3, executions: 10, millicores: 4_000 };
const usage = (jobs: number, executions: number, millicores: number): OwnerUsage => ({ jobs, executions, millicores });

describe("exceededQuota()", () => {
  it.each([
    [usage(2, 9, 3_000), usage(3, 10, 4_000), null],
    [usage(3, 1, 0), usage(4, 1, 0), { resource: "jobs", limit: 3, used: 3, wanted: 4 }],
    [usage(1, 10, 0), usage(1, 11, 0), { resource: "executions", limit: 10, used: 10, wanted: 11 }],
    [usage(1, 1, 4_000), usage(1, 1, 4_001), { resource: "millicores", limit: 4_000, used: 4_000, wanted: 4_001 }],
    // Accept a change that does not increase the usage, even if the usage exceeds a quota that was lowered later.
    [usage(9, 90, 9_000), usage(9, 90, 9_000), null],
    [usage(9, 90, 9_000), usage(9, 80, 8_000), null],
    [usage(9, 90, 9_000), usage(9, 80, 9_500), { resource: "millicores", limit: 4_000, used: 9_000, wanted: 9_500 }],
  ])("should compare %j with %j", (before, after, exceeded) => {
    expect(exceededQuota(QUOTA, before, after)).toEqual(exceeded);
  });

  it("should limit nothing that has no limit", () => {
    const none = { jobs: null, executions: null, millicores: null };
    expect(exceededQuota(none, usage(0, 0, 0), usage(1e6, 1e6, 1e9))).toBeNull();
  });
});
