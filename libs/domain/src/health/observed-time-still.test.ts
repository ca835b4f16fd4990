import { describe, expect, it } from "@jest/globals";
import { ObservedTime } from "./observed-time.ts";

describe("ObservedTime.standStill()", () => {
  it("should stand still for the given time, grant that, and then continue", () => {
    const time = new ObservedTime({ startMs: 0, maxGapMs: 200 });
    for (let nowMs = 100; nowMs <= 1_000; nowMs += 100) time.advance(nowMs);
    time.standStill(1_000, 500);
    let lostMs = 0;
    for (let nowMs = 1_100; nowMs <= 2_000; nowMs += 100) {
      lostMs += time.advance(nowMs);
      expect(time.at(nowMs)).toBe(Math.max(1_000, nowMs - 500));
    }
    expect(lostMs).toBe(500);
    expect(time.lostTotalMs).toBe(500);
  });

  it("should grant no moment twice when it was stopped or held up meanwhile", () => {
    const time = new ObservedTime({ startMs: 0, maxGapMs: 200 });
    time.standStill(0, 500);
    time.suspend(300);
    expect(time.resume(400)).toBe(100);
    expect(time.at(400)).toBe(0);
    // Still for 100 more, then 200 that pass for normal; the rest of the gap is lost.
    expect(time.advance(1_000)).toBe(400);
    expect(time.at(1_000)).toBe(200);
    expect(time.lostTotalMs).toBe(800);
  });
});
