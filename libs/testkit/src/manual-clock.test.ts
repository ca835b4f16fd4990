import { describe, expect, it } from "@jest/globals";
import { ManualClock, settle } from "./manual-clock.ts";

describe("ManualClock", () => {
  it("should count sleepers only until they wake or are aborted", async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const [woken, aborted] = [clock.sleep(5, stop.signal), clock.sleep(10, stop.signal)];
    expect(clock.sleepers).toBe(2);
    clock.advance(5);
    await woken;
    expect(clock.sleepers).toBe(1);
    stop.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    expect(clock.sleepers).toBe(0);
  });

  it("should wake the sleepers that are due, the earliest first", async () => {
    const clock = new ManualClock();
    const { signal } = new AbortController();
    const woken: number[] = [];
    for (const ms of [30, 10, 20, 31]) void clock.sleep(ms, signal).then(() => woken.push(ms));
    clock.advance(30);
    await settle();
    expect(woken).toEqual([10, 20, 30]);
  });
});
