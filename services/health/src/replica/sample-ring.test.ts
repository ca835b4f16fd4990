import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { SAMPLES_KEPT, SampleRing } from "./sample-ring.ts";

const usage = (init: MessageInitShape<typeof ResourceUsageSchema>) =>
  create(ResourceUsageSchema, init);

const FULL = usage({
  cpuPercent: 12.5,
  memoryUsedMib: 4_000_000_001,
  memoryTotalMib: 4_294_967_295,
  diskUsedMib: 7,
  diskTotalMib: 9,
  temperatureAverageCelsius: 41.5,
  temperatureMaxCelsius: -3.25,
  gpus: [
    {
      index: 0,
      utilizationPercent: 99.5,
      memoryUsedMib: 81_000,
      memoryTotalMib: 81_559,
      temperatureCelsius: 70,
    },
    { index: 3, utilizationPercent: 0, memoryUsedMib: 1, memoryTotalMib: 81_559 },
  ],
});

describe("SampleRing", () => {
  it("should give back what was added, to the last bit", () => {
    const ring = new SampleRing(1_000);
    ring.add(FULL, 61_234);
    expect(ring.latest()).toEqual({ atMs: 61_234, usage: FULL });
    expect(ring.list()).toEqual([{ atMs: 61_234, usage: FULL }]);
  });

  it("should have nothing before the first sample", () => {
    const ring = new SampleRing(0);
    expect([ring.size, ring.latest(), ring.list()]).toEqual([0, null, []]);
  });

  it("should leave out temperatures where there is no sensor", () => {
    const ring = new SampleRing(0);
    ring.add(usage({ gpus: [{ index: 0 }] }), 1);
    const latest = ring.latest()?.usage;
    expect(latest?.temperatureAverageCelsius).toBeUndefined();
    expect(latest?.gpus[0]?.temperatureCelsius).toBeUndefined();
  });

  it("should fill in totals that were not sent again", () => {
    const ring = new SampleRing(0);
    ring.add(FULL, 1);
    ring.add(usage({ memoryUsedMib: 5, gpus: [{ index: 0 }, { index: 3 }] }), 2);
    const latest = ring.latest()?.usage;
    expect([latest?.memoryTotalMib, latest?.diskTotalMib]).toEqual([4_294_967_295, 9]);
    expect(latest?.gpus.map((gpu) => gpu.memoryTotalMib)).toEqual([81_559, 81_559]);
  });

  it("should keep the last 60, oldest first, whatever their number", () => {
    const ring = new SampleRing(0);
    for (let at = 1; at <= 150; at++) {
      ring.add(usage({ memoryUsedMib: at, gpus: [{ index: 1, memoryUsedMib: at }] }), at);
      const expected = Array.from({ length: Math.min(at, SAMPLES_KEPT) }, (_, i) => i).map(
        (age) => at - Math.min(at, SAMPLES_KEPT) + 1 + age,
      );
      const samples = ring.list();
      expect(samples.map((sample) => sample.atMs)).toEqual(expected);
      expect(samples.map((sample) => sample.usage.memoryUsedMib)).toEqual(expected);
      expect(samples.map((sample) => sample.usage.gpus[0]?.memoryUsedMib)).toEqual(expected);
      expect(ring.latest()?.atMs).toBe(at);
    }
  });

  it.each([1, 59, 60, 100])("should keep %i samples when a GPU comes and goes", (before) => {
    const ring = new SampleRing(0);
    for (let at = 1; at <= before; at++) ring.add(usage({ memoryUsedMib: at }), at);
    ring.add(usage({ memoryUsedMib: before + 1, gpus: [{ index: 0 }, { index: 1 }] }), before + 1);
    ring.add(usage({ memoryUsedMib: before + 2, gpus: [{ index: 1 }] }), before + 2);
    const samples = ring.list();
    expect(samples.map((sample) => sample.usage.memoryUsedMib)).toEqual(
      Array.from({ length: Math.min(SAMPLES_KEPT, before + 2) }, (_, i) => i).map(
        (age) => before + 3 - Math.min(SAMPLES_KEPT, before + 2) + age,
      ),
    );
    expect(samples.at(-2)?.usage.gpus.map((gpu) => gpu.index)).toEqual([0, 1]);
    expect(samples.at(-1)?.usage.gpus.map((gpu) => gpu.index)).toEqual([1]);
    expect(samples.at(-3)?.usage.gpus ?? []).toEqual([]);
  });
});
