import { describe, expect, it } from "@jest/globals";
import { weighReport } from "./report-plan.ts";

const INFO = { cpu: { cores: 4 }, memoryBytes: "100000", hostname: "h" };
const BEFORE = { membership: "APPROVED", approved: INFO, info: INFO, missing: [] } as const;

describe("weighReport()", () => {
  it.each<[string, typeof INFO, string]>([
    ["a fact that changed", { ...INFO, hostname: "other" }, "save"],
    ["the same in other order", { hostname: "h", memoryBytes: "100000", cpu: { cores: 4 } }, "save"],
    ["memory that moved by little", { ...INFO, memoryBytes: "99000" }, "known"],
    ["memory that grew by more", { ...INFO, memoryBytes: "110000" }, "save-if-rested"],
    ["memory that is missing", { ...INFO, memoryBytes: "90000" }, "save"],
    ["cores that are missing", { ...INFO, cpu: { cores: 3 } }, "save"],
  ])("should decide on %s", (_, info, verdict) => {
    expect(weighReport(BEFORE, info).verdict).toBe(verdict);
  });

  it("should record approved hardware where none was: the last report of an approved node, or this one", () => {
    expect(weighReport({ ...BEFORE, approved: null }, { ...INFO, cpu: { cores: 3 } })).toMatchObject({
      approved: { cpu: { cores: 4 }, memoryBytes: "100000" },
      missing: [{ part: "cores" }],
    });
    expect(weighReport({ ...BEFORE, approved: null, info: null }, INFO)).toMatchObject({
      approved: { cpu: { cores: 4 } },
      missing: [],
    });
    expect(weighReport({ ...BEFORE, membership: "PENDING", approved: null }, INFO).approved).toBeNull();
    expect(weighReport(BEFORE, INFO).approved).toBeNull();
  });
});
