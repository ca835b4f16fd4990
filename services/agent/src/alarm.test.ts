import { describe, expect, it } from "@jest/globals";
import { Alarm } from "./alarm.ts";
import { createManualClock } from "./testing/manual-clock.ts";

describe("Alarm", () => {
  it("should ring once, at the time set last", async () => {
    const clock = createManualClock();
    const rung: number[] = [];
    const alarm = new Alarm(clock, () => rung.push(clock.nowMs()));
    alarm.set(1_000);
    alarm.set(2_000);
    await clock.advance(5_000);
    expect(rung).toEqual([2_000]);
    alarm.set(0);
    await clock.advance(0);
    expect(rung).toEqual([2_000, 5_000]);
  });

  it("should be silent once cleared, even when the time has just come", async () => {
    const clock = createManualClock();
    let rung = 0;
    const alarm = new Alarm(clock, () => {
      rung += 1;
    });
    alarm.set(0);
    alarm.clear();
    await clock.advance(10);
    expect(rung).toBe(0);
  });
});
