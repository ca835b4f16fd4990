import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { SamplePages, type SamplePlace } from "./sample-pages.ts";
import { SampleRing } from "./sample-ring.ts";
import { SAMPLES_KEPT, shapeOf } from "./sample-shape.ts";

const usage = (init: MessageInitShape<typeof ResourceUsageSchema>) => create(ResourceUsageSchema, init);

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
  numaNodes: [
    { id: 0, cpuPercent: 12.25, memoryUsedMib: 4_000_000_001, memoryTotalMib: 4_294_967_295 },
    { id: 8, memoryUsedMib: 3, memoryTotalMib: 5 },
  ],
});

/** Records the sizes of the allocated blocks. */
class CountedPages extends SamplePages {
  readonly taken: number[] = [];

  override take(sizeWords: number): SamplePlace {
    this.taken.push(sizeWords);
    return super.take(sizeWords);
  }
}

const pages = new SamplePages();
const ringFrom = (epochMs: number) => new SampleRing(epochMs, pages);

describe("SampleRing", () => {
  it("should return what was added", () => {
    const ring = ringFrom(1_000);
    ring.add(FULL, 61_234);
    expect(ring.latest()).toEqual({ atMs: 61_234, usage: FULL });
    expect(ring.list()).toEqual([{ atMs: 61_234, usage: FULL }]);
  });

  it("should have nothing before the first sample", () => {
    const ring = ringFrom(0);
    expect([ring.size, ring.latest(), ring.list()]).toEqual([0, null, []]);
  });

  it("should leave out temperatures without a sensor", () => {
    const ring = ringFrom(0);
    ring.add(usage({ gpus: [{ index: 0 }] }), 1);
    const latest = ring.latest()?.usage;
    expect(latest?.temperatureAverageCelsius).toBeUndefined();
    expect(latest?.gpus[0]?.temperatureCelsius).toBeUndefined();
  });

  it("should distinguish an unknown amount from 0", () => {
    const ring = ringFrom(0);
    const parts = (memoryUsedMib: number) => ({
      gpus: [{ index: 0, memoryUsedMib }],
      numaNodes: [{ id: 0, memoryUsedMib }, { id: 1 }],
    });
    ring.add(usage({ memoryUsedMib: 0, diskUsedMib: 0, ...parts(0) }), 1);
    ring.add(usage({ gpus: [{ index: 0 }], numaNodes: [{ id: 0 }, { id: 1 }] }), 2);
    const amounts = ring
      .list()
      .map((it) => [
        it.usage.memoryUsedMib,
        it.usage.diskUsedMib,
        it.usage.gpus[0]?.memoryUsedMib,
        it.usage.numaNodes[0]?.memoryUsedMib,
        it.usage.numaNodes[1]?.memoryUsedMib,
      ]);
    expect(amounts).toEqual([[0, 0, 0, 0, undefined], Array(5).fill(undefined)]);
    expect(ring.summary()?.memoryUsedMib).toBeNull();
  });

  it("should fill in totals that were not sent again", () => {
    const ring = ringFrom(0);
    ring.add(FULL, 1);
    ring.add(usage({ memoryUsedMib: 5, gpus: [{ index: 0 }, { index: 3 }], numaNodes: [{ id: 0 }, { id: 8 }] }), 2);
    const latest = ring.latest()?.usage;
    expect(latest?.numaNodes.map((node) => node.memoryTotalMib)).toEqual([4_294_967_295, 5]);
    expect([latest?.memoryTotalMib, latest?.diskTotalMib]).toEqual([4_294_967_295, 9]);
    expect(latest?.gpus.map((gpu) => gpu.memoryTotalMib)).toEqual([81_559, 81_559]);
  });

  it("should keep the last 60, oldest first, whatever their number", () => {
    const ring = ringFrom(0);
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
    const ring = ringFrom(0);
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

  it.each([1, 59, 60, 100])("should keep %i samples when NUMA nodes come and go next to a GPU", (before) => {
    const ring = ringFrom(0);
    const gpus = [{ index: 4, memoryUsedMib: 44, memoryTotalMib: 99 }];
    for (let at = 1; at <= before; at++) ring.add(usage({ memoryUsedMib: at, gpus }), at);
    const numaNodes = [1, 2].map((id) => ({ id, cpuPercent: id, memoryUsedMib: id, memoryTotalMib: 10 * id }));
    ring.add(usage({ gpus, numaNodes }), before + 1);
    ring.add(usage({ gpus: [...gpus, { index: 5 }], numaNodes }), before + 2);
    ring.add(usage({ gpus }), before + 3);
    const samples = ring.list().map((sample) => sample.usage);
    expect(samples).toHaveLength(Math.min(SAMPLES_KEPT, before + 3));
    expect(samples.map((it) => it.gpus[0])).toEqual(samples.map(() => expect.objectContaining(gpus[0] ?? {})));
    expect(samples.slice(-3).map((it) => it.numaNodes)).toEqual([
      ...[1, 2].map(() => numaNodes.map((node) => expect.objectContaining(node))),
      [],
    ]);
    expect(samples.at(-4)?.numaNodes).toEqual([]);
  });

  it("should take no memory for a single NUMA node, whose values are the machine's", () => {
    const counted = new CountedPages();
    const ring = new SampleRing(0, counted);
    ring.add(usage({ numaNodes: [{ id: 0, memoryUsedMib: 5 }] }), 1);
    expect(ring.latest()?.usage.numaNodes).toEqual([]);
    expect(counted.taken).toEqual([shapeOf(0, 0).sizeWords]);
    ring.add(usage({ numaNodes: [{ id: 0 }, { id: 1 }] }), 2);
    const [alone = 0, withTwo = 0] = counted.taken;
    expect((withTwo - alone) * Uint16Array.BYTES_PER_ELEMENT).toBe(2 * 368);
  });

  it("should keep percentages and temperatures to a hundredth, and clamp invalid values", () => {
    const ring = ringFrom(0);
    const odd = {
      cpuPercent: 33.337,
      temperatureAverageCelsius: Number.NaN,
      temperatureMaxCelsius: 1e9,
      gpus: [{ index: 4_294_967_295, utilizationPercent: -5, memoryUsedMib: 4_294_967_295 }],
    };
    ring.add(usage(odd), 1);
    expect(ring.latest()?.usage).toMatchObject({
      cpuPercent: 33.34,
      temperatureMaxCelsius: 382.19,
      gpus: [{ index: 4_294_967_295, utilizationPercent: 0, memoryUsedMib: 4_294_967_294 }],
    });
    expect(ring.latest()?.usage.temperatureAverageCelsius).toBeUndefined();
  });

  it("should start over when its clock has run for longer than it can represent", () => {
    const ring = ringFrom(0);
    ring.add(FULL, 1);
    ring.add(usage({ cpuPercent: 5 }), 2 ** 32);
    expect(ring.list().map(({ atMs }) => atMs)).toEqual([2 ** 32]);
    expect(ring.latest()?.usage.memoryTotalMib).toBe(4_294_967_295);
    const small = ringFrom(0);
    small.add(usage({ memoryTotalMib: 7 }), 1);
    small.add(usage({ cpuPercent: 5 }), 2 ** 32);
    expect(small.latest()?.usage.memoryTotalMib).toBe(7);
  });

  it("should start over rather than grow for ever when GPUs never return", () => {
    const ring = ringFrom(0);
    for (let at = 0; at < 300; at++) ring.add(usage({ gpus: [{ index: at }] }), at);
    expect(ring.latest()?.usage.gpus.map(({ index }) => index)).toEqual([299]);
    expect(ring.size).toBeLessThanOrEqual(SAMPLES_KEPT);
  });

  it("should start over rather than grow for ever when NUMA nodes never return, with the GPUs that stay", () => {
    const ring = ringFrom(0);
    const gpus = [{ index: 3 }];
    for (let at = 0; at < 300; at += 2) ring.add(usage({ gpus, numaNodes: [{ id: at }, { id: at + 1 }] }), at);
    const latest = ring.latest()?.usage;
    expect(latest?.numaNodes.map(({ id }) => id)).toEqual([298, 299]);
    expect(latest?.gpus.map(({ index }) => index)).toEqual([3]);
    expect(ring.size).toBeLessThanOrEqual(SAMPLES_KEPT);
  });

  it("should not mix up the samples of nodes that share a page, released or not", () => {
    const rings = Array.from({ length: 100 }, () => ringFrom(0));
    for (const [node, ring] of rings.entries()) {
      for (let at = 1; at <= 70; at++) {
        ring.add(usage({ memoryUsedMib: node, gpus: [{ index: node % 3 }, { index: 7 }] }), at);
      }
    }
    for (const ring of rings.splice(50)) ring.release();
    const later = Array.from({ length: 60 }, () => ringFrom(0));
    for (const ring of later) {
      expect(ring.list()).toEqual([]);
      ring.add(usage({ memoryUsedMib: 999, gpus: [{ index: 9 }, { index: 8 }] }), 1);
    }
    for (const [node, ring] of rings.entries()) {
      const samples = ring.list();
      expect(samples.map((it) => it.usage.memoryUsedMib)).toEqual(Array(60).fill(node));
      expect(samples[0]?.usage.gpus.map(({ index }) => index)).toEqual([node % 3, 7]);
    }
    for (const ring of later) expect(ring.list()).toHaveLength(1);
  });

  it("should distinguish 0 from unknown", () => {
    const ring = ringFrom(0);
    ring.add(create(ResourceUsageSchema, { gpus: [{ index: 0 }] }), 0);
    ring.add(create(ResourceUsageSchema, { cpuPercent: 0, gpus: [{ index: 0, utilizationPercent: 0 }] }), 1_000);
    const shares = ring.list().map(({ usage: { cpuPercent, gpus } }) => [cpuPercent, gpus[0]?.utilizationPercent]);
    expect(shares).toEqual([
      [undefined, undefined],
      [0, 0],
    ]);
  });
});
