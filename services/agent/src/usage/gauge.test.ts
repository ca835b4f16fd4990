import { describe, expect, it } from "@jest/globals";
import { createGauge } from "./gauge.ts";

describe("createGauge()", () => {
  it("should keep the last reading when a later one fails or finds nothing", async () => {
    const readings = [async () => 1, async () => undefined, async () => Promise.reject(new Error("unplugged"))];
    const gauge = createGauge(
      async () => readings.shift()?.(),
      () => 0,
    );
    expect(gauge.latest(1_000)).toBeUndefined();
    await gauge.refresh();
    await gauge.refresh();
    await gauge.refresh();
    expect(gauge.latest(1_000)).toBe(1);
  });

  it.each([
    [999, 7],
    [1_000, 7],
    [1_001, undefined],
  ])("should judge a reading of age %d ms", async (ageMs, expected) => {
    let nowMs = 50;
    const gauge = createGauge(
      async () => 7,
      () => nowMs,
    );
    await gauge.refresh();
    nowMs += ageMs;
    expect(gauge.latest(1_000)).toBe(expected);
  });
});
