import { describe, expect, it } from "@jest/globals";
import { sparkline } from "./health-columns.ts";

describe("sparkline()", () => {
  it("should draw from low to high, and clamp values out of range", () => {
    expect(sparkline([-10, 0, 49, 50, 100, 200], { width: 6 })).toBe("▁▁▄▅██");
  });

  it("should leave gaps for missing values", () => {
    expect(sparkline([50, undefined, Number.NaN, 50], { width: 4 })).toBe("▅  ▅");
  });

  it("should draw the last values, at the right", () => {
    expect(sparkline([0, 100], { width: 4 })).toBe("  ▁█");
    expect(sparkline([0, 0, 100], { width: 2 })).toBe("▁█");
    expect(sparkline([], { width: 3 })).toBe("   ");
  });
});
