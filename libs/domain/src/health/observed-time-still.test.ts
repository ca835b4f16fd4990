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

  it("should grant no moment twice if it was stopped or delayed in the meantime", () => {
    const time = new ObservedTime({ startMs: 0, maxGapMs: 200 });
    time.standStill(0, 500);
    time.suspend(300);
    expect(time.resume(400)).toBe(100);
    expect(time.at(400)).toBe(0);
    // The clock stands still for another 100 ms, then follows for 200 ms (`maxGapMs`). The remaining 300 ms are
    // lost too.
    expect(time.advance(1_000)).toBe(400);
    expect(time.at(1_000)).toBe(200);
    expect(time.lostTotalMs).toBe(800);
  });

  it("should be taken off from a suspension that reaches back into it", () => {
    const time = new ObservedTime({ startMs: 0, maxGapMs: 200 });
    time.standStill(0, 500);
    for (let nowMs = 100; nowMs <= 600; nowMs += 100) time.advance(nowMs);
    time.suspend(200);
    // 300 of the 1,800 ms were already granted while the clock stood still.
    expect(time.resume(2_000)).toBe(1_500);
    expect(time.lostTotalMs).toBe(2_000);
  });
});

describe("ObservedTime.advance() compared with standing still", () => {
  it("should ignore a time that lies behind", () => {
    const time = new ObservedTime({ startMs: 0, maxGapMs: 200 });
    for (let nowMs = 100; nowMs <= 1_000; nowMs += 100) time.advance(nowMs);
    expect([time.advance(500), time.advance(1_000), time.at(1_000), time.lostTotalMs]).toEqual([0, 0, 1_000, 0]);
  });

  it("should remember a limited number of losses; others can be granted twice, which harms no node", () => {
    const time = new ObservedTime({ startMs: 0, maxGapMs: 200 });
    // Each step loses 100 ms. Only the last 64 losses are remembered.
    for (let nowMs = 300; nowMs <= 70 * 300; nowMs += 300) expect(time.advance(nowMs)).toBe(100);
    time.suspend(0);
    expect(time.resume(21_000)).toBe(21_000 - 64 * 100);
  });
});
