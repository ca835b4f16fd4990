import { describe, expect, it } from "@jest/globals";
import { ManualClock } from "@rollcall/testkit/time";
import { Alarm } from "./alarm.ts";

describe("Alarm", () => {
  it("should ring once, at the time set last", async () => {
    const clock = new ManualClock();
    const rung: number[] = [];
    const alarm = new Alarm(clock, () => rung.push(clock.nowMs()));
    alarm.setAt(1_000);
    alarm.setAt(2_000);
    await clock.pass(5_000);
    expect(rung).toEqual([2_000]);
    alarm.setAt(0);
    await clock.pass(0);
    expect(rung).toEqual([2_000, 5_000]);
  });

  it("should not ring once cleared, even if it has just become due", async () => {
    const clock = new ManualClock();
    let rung = 0;
    const alarm = new Alarm(clock, () => {
      rung += 1;
    });
    alarm.setAt(0);
    alarm.clear();
    await clock.pass(10);
    expect(rung).toBe(0);
  });
});
