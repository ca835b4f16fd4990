import { describe, expect, it } from "@jest/globals";
import type { BrakeState } from "./brake.ts";
import { releaseRate } from "./release-rate.ts";

const brake = (state: BrakeState, size = 0) => ({ state, size });

describe("releaseRate()", () => {
  it("should allow a group of five half a reaction a minute, not a whole one", () => {
    expect(releaseRate(brake("PARTIAL", 5), brake("NORMAL"))).toEqual({
      perMinute: 1,
      intervalMs: 120_000,
      isByCluster: false,
    });
  });

  it("should be that of the stricter of the two brakes", () => {
    const rate = releaseRate(brake("PARTIAL", 400), brake("PARTIAL", 50));
    expect(rate).toEqual({ perMinute: 5, intervalMs: 12_000, isByCluster: true });
    const own = releaseRate(brake("PARTIAL", 50), brake("PARTIAL", 400));
    expect(own).toEqual({ perMinute: 5, intervalMs: 12_000, isByCluster: false });
    expect(releaseRate(brake("NORMAL"), brake("PARTIAL", 50))).toEqual(rate);
  });

  it.each(["FULL", "FROZEN"] as const)("should be none while a brake is %s", (state) => {
    const none = { perMinute: 0, intervalMs: Number.POSITIVE_INFINITY };
    const own = releaseRate(brake(state, 50), brake("PARTIAL", 50));
    expect(own).toEqual({ ...none, isByCluster: false });
    const cluster = releaseRate(brake("PARTIAL", 50), brake(state, 50));
    expect(cluster).toEqual({ ...none, isByCluster: true });
    expect(releaseRate(brake(state, 50), null)).toEqual({ ...none, isByCluster: false });
  });

  it("should be without limit while both are NORMAL", () => {
    expect(releaseRate(brake("NORMAL"), brake("NORMAL"))).toBeNull();
    expect(releaseRate(brake("NORMAL"), null)).toBeNull();
  });
});
