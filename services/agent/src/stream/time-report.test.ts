import { describe, expect, it } from "@jest/globals";
import { ManualClock } from "@rollcall/testkit/time";
import { TimeReport } from "./time-report.ts";

describe("TimeReport", () => {
  it("should tell the wall time at first, and once a minute", () => {
    const clock = new ManualClock({ wallMs: 1_000_000 });
    const report = new TimeReport(clock);
    expect(report.next()).toBe(1_000_000n);
    clock.advance(59_999);
    expect(report.next()).toBe(0n);
    clock.jumpWall(-500_000);
    clock.advance(1);
    expect(report.next()).toBe(560_000n);
    expect(report.next()).toBe(0n);
  });
});
