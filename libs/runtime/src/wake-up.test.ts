import { describe, expect, it } from "@jest/globals";
import { ManualClock } from "@rollcall/testkit/time";
import { WakeUp } from "./wake-up.ts";

const never = new AbortController().signal;

describe("WakeUp", () => {
  it("should rest until called", async () => {
    const wakeUp = new WakeUp();
    const rest = wakeUp.rest(new ManualClock(), { atMostMs: 1_000 }, never);
    wakeUp.call();
    await rest;
  });

  it("should rest until the time is over", async () => {
    const clock = new ManualClock();
    const rest = new WakeUp().rest(clock, { atMostMs: 1_000 }, never);
    clock.advance(1_000);
    await rest;
  });

  it("should not rest when it was called before, once", async () => {
    const clock = new ManualClock();
    const wakeUp = new WakeUp();
    wakeUp.call();
    wakeUp.call();
    await wakeUp.rest(clock, { atMostMs: 1_000 }, never);
    let isOver = false;
    const second = wakeUp.rest(clock, { atMostMs: 1_000 }, never).then(() => {
      isOver = true;
    });
    await Promise.resolve();
    expect(isOver).toBe(false);
    clock.advance(1_000);
    await second;
  });

  it("should rest for the least time although called, and then no longer", async () => {
    const clock = new ManualClock();
    const wakeUp = new WakeUp();
    wakeUp.call();
    let isOver = false;
    const rest = wakeUp.rest(clock, { atMostMs: 1_000, atLeastMs: 50 }, never).then(() => {
      isOver = true;
    });
    wakeUp.call();
    await clock.pass(49);
    expect(isOver).toBe(false);
    await clock.pass(1);
    await rest;
  });

  it("should rest no longer than the most time, the least included", async () => {
    const clock = new ManualClock();
    const rest = new WakeUp().rest(clock, { atMostMs: 1_000, atLeastMs: 50 }, never);
    await clock.pass(1_000);
    await rest;
    expect(clock.sleepers).toBe(0);
  });

  it("should end with the signal's reason, resting or not", async () => {
    const ending = new AbortController();
    const wakeUp = new WakeUp();
    const rest = wakeUp.rest(new ManualClock(), { atMostMs: 1_000 }, ending.signal);
    ending.abort(new Error("the end"));
    await expect(rest).rejects.toThrow("the end");
    await expect(
      wakeUp.rest(new ManualClock(), { atMostMs: 1_000 }, ending.signal),
    ).rejects.toThrow("the end");
  });
});
