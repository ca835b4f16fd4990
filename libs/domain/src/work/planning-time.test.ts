import { describe, expect, it } from "@jest/globals";
import { followClock, notAfter, type PlanningTime } from "./planning-time.ts";

const MINUTE_MS = 60_000;

describe("followClock()", () => {
  it.each([-MINUTE_MS, MINUTE_MS])(
    "should change no wait by more than a tenth when the clock steps by %d ms",
    (step) => {
      const stepAtMs = 100_000;
      const recordMs = (atMs: number) => 1_700_000_000_000 + atMs + (atMs < stepAtMs ? 0 : step);
      let time: PlanningTime | null = followClock(null, 0, recordMs(0));
      const planned = (atMs: number) => atMs + (time?.aheadMs ?? Number.NaN);
      let before = planned(0);
      for (let atMs = 10_000; atMs <= 800_000; atMs += 10_000) {
        time = followClock(time, atMs, recordMs(atMs));
        const passed = planned(atMs) - before;
        expect(passed).toBeGreaterThanOrEqual(9_000);
        expect(passed).toBeLessThanOrEqual(11_000);
        before = planned(atMs);
      }
      expect(planned(800_000)).toBe(recordMs(800_000));
    },
  );

  it.each([
    [600_000, false],
    [-600_000, false],
    [600_001, true],
    [-600_001, true],
  ])("should begin again after a step of %d ms: %s", (step, isTooFar) => {
    expect(followClock({ readAtMs: 0, aheadMs: 0 }, 10_000, 10_000 + step) === null).toBe(isTooFar);
  });
});

describe("notAfter()", () => {
  const record = { createdAtMs: 1_000, lostAtMs: 2_000, endedAtMs: null } as Parameters<typeof notAfter>[0];

  it("should bring times that are still to come to the present, and leave others", () => {
    expect(notAfter(record, 1_500)).toEqual({ createdAtMs: 1_000, lostAtMs: 1_500, endedAtMs: null });
    expect(notAfter(record, 500)).toEqual({ createdAtMs: 500, lostAtMs: 500, endedAtMs: null });
    expect(notAfter(record, 2_000)).toBe(record);
  });
});
