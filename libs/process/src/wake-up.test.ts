import { describe, expect, it } from "@jest/globals";
import { ManualClock } from "@rollcall/testkit/time";
import { WakeUp } from "./wake-up.ts";

const never = new AbortController().signal;

/** Return a promise of a rest, and whether the rest has ended. */
function watched(rest: Promise<void>) {
  const state = { isOver: false, over: rest };
  state.over = rest.then(() => {
    state.isOver = true;
  });
  return state;
}

describe("WakeUp", () => {
  it("should rest until called", async () => {
    const wakeUp = new WakeUp();
    const rest = wakeUp.rest(new ManualClock(), { atMostMs: 1_000 }, never);
    wakeUp.call();
    await rest;
  });

  it("should rest until the time has passed", async () => {
    const clock = new ManualClock();
    const rest = new WakeUp().rest(clock, { atMostMs: 1_000 }, never);
    clock.advance(1_000);
    await rest;
  });

  it("should skip one rest when it was called before", async () => {
    const clock = new ManualClock();
    const wakeUp = new WakeUp();
    wakeUp.call();
    wakeUp.call();
    await wakeUp.rest(clock, { atMostMs: 1_000 }, never);
    const second = watched(wakeUp.rest(clock, { atMostMs: 1_000 }, never));
    await clock.pass(999);
    expect(second.isOver).toBe(false);
    await clock.pass(1);
    await second.over;
  });

  it("should rest for the minimum time when called, and no longer", async () => {
    const clock = new ManualClock();
    const wakeUp = new WakeUp();
    wakeUp.call();
    const rest = watched(wakeUp.rest(clock, { atMostMs: 1_000, atLeastMs: 50 }, never));
    wakeUp.call();
    await clock.pass(49);
    expect(rest.isOver).toBe(false);
    await clock.pass(1);
    await rest.over;
  });

  it("should rest at most the maximum time, including the minimum", async () => {
    const clock = new ManualClock();
    const rest = new WakeUp().rest(clock, { atMostMs: 1_000, atLeastMs: 50 }, never);
    await clock.pass(1_000);
    await rest;
    expect(clock.sleepers).toBe(0);
  });

  it("should wait for others after a non-urgent call, resting or not", async () => {
    const clock = new ManualClock();
    const wakeUp = new WakeUp();
    const time = { atMostMs: 1_000, soonMs: 30 };
    const first = watched(wakeUp.rest(clock, time, never));
    await clock.pass(0);
    wakeUp.callSoon();
    wakeUp.callSoon();
    await clock.pass(29);
    expect(first.isOver).toBe(false);
    await clock.pass(1);
    await first.over;
    wakeUp.callSoon();
    const second = watched(wakeUp.rest(clock, { ...time, atLeastMs: 50 }, never));
    await clock.pass(79);
    expect(second.isOver).toBe(false);
    await clock.pass(1);
    await second.over;
    const third = watched(wakeUp.rest(clock, time, never));
    await clock.pass(999);
    expect(third.isOver).toBe(false);
    await clock.pass(1);
    await third.over;
    expect(clock.sleepers).toBe(0);
  });

  it("should stop waiting on an urgent call", async () => {
    const clock = new ManualClock();
    const wakeUp = new WakeUp();
    const time = { atMostMs: 1_000, soonMs: 30 };
    wakeUp.callSoon();
    const rest = watched(wakeUp.rest(clock, time, never));
    await clock.pass(10);
    expect(rest.isOver).toBe(false);
    wakeUp.call();
    await rest.over;
    wakeUp.call();
    wakeUp.callSoon();
    await wakeUp.rest(clock, time, never);
    expect(clock.sleepers).toBe(0);
  });

  it("should end with the signal's reason, resting or not", async () => {
    const ending = new AbortController();
    const wakeUp = new WakeUp();
    const rest = wakeUp.rest(new ManualClock(), { atMostMs: 1_000 }, ending.signal);
    ending.abort(new Error("the end"));
    await expect(rest).rejects.toThrow("the end");
    const another = new AbortController();
    wakeUp.callSoon();
    const soon = wakeUp.rest(new ManualClock(), { atMostMs: 1_000, soonMs: 30 }, another.signal);
    another.abort(new Error("another end"));
    await expect(soon).rejects.toThrow("another end");
    await expect(wakeUp.rest(new ManualClock(), { atMostMs: 1_000 }, ending.signal)).rejects.toThrow("the end");
  });
});
