import { getEventListeners } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { systemClock } from "./clock.ts";

describe("systemClock", () => {
  it("should sleep at least as long as asked", async () => {
    const startMs = systemClock.nowMs();
    await systemClock.sleep(20, new AbortController().signal);
    expect(systemClock.nowMs() - startMs).toBeGreaterThanOrEqual(18);
  });

  it("should leave no abort listener behind when it wakes or is aborted", async () => {
    const controller = new AbortController();
    await systemClock.sleep(1, controller.signal);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
    const asleep = systemClock.sleep(60_000, controller.signal);
    const outcome = expect(asleep).rejects.toThrow("enough");
    controller.abort(new Error("enough"));
    await outcome;
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  });

  it("should reject immediately when the signal has already aborted", async () => {
    const asleep = systemClock.sleep(60_000, AbortSignal.abort(new Error("over")));
    await expect(asleep).rejects.toThrow("over");
  });

  it("should accept zero, negative and very long sleeps", async () => {
    await systemClock.sleep(0, new AbortController().signal);
    await systemClock.sleep(-5, new AbortController().signal);
    const controller = new AbortController();
    let woke = false;
    const asleep = systemClock.sleep(3_000_000_000, controller.signal).then(() => {
      woke = true;
    });
    await systemClock.sleep(20, new AbortController().signal);
    expect(woke).toBe(false);
    controller.abort(new Error("done"));
    await expect(asleep).rejects.toThrow("done");
  });
});
