import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { NodeHealthSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { meanSeries, mostSeries, percentOf, usageHistory } from "./usage.ts";

describe("usageHistory()", () => {
  it("should be empty, not an error, for an unknown node", () => {
    expect(usageHistory(undefined)).toEqual({
      cpu: [],
      memory: [],
      memoryNow: null,
      diskNow: null,
      temperature: [],
      temperatureMax: [],
      gpus: [],
      numaNodes: [],
    });
  });

  it("should use the latest sample if there is no history", () => {
    const health = create(NodeHealthSchema, { latest: { usage: { cpuPercent: 5 } } });
    expect(usageHistory(health).cpu).toEqual([5]);
  });

  it("should leave gaps if memory or disk could not be read", () => {
    const totals = { memoryTotalMib: 4, diskTotalMib: 8 };
    const gpu = { index: 0, memoryTotalMib: 4 };
    const health = create(NodeHealthSchema, {
      samples: [
        { usage: { ...totals, memoryUsedMib: 0, diskUsedMib: 2, gpus: [{ ...gpu, memoryUsedMib: 1 }] } },
        { usage: { ...totals, gpus: [gpu] } },
      ],
    });
    const { memory, memoryNow, diskNow, gpus } = usageHistory(health);
    expect({ memory, memoryNow, diskNow }).toEqual({ memory: [0, undefined], memoryNow: null, diskNow: null });
    expect(gpus[0]).toMatchObject({ memory: [25, undefined], memoryNow: null });
  });

  it("should carry totals over, and leave gaps for GPUs that come and go", () => {
    const gpu = { index: 1, utilizationPercent: 40, memoryUsedMib: 10, memoryTotalMib: 40 };
    const health = create(NodeHealthSchema, {
      samples: [{ usage: { memoryUsedMib: 1, memoryTotalMib: 4 } }, { usage: { memoryUsedMib: 2, gpus: [gpu] } }, {}],
    });
    const usage = usageHistory(health);
    expect(usage.memory).toEqual([25, 50, undefined]);
    expect(usage.memoryNow).toBeNull();
    expect(usage.gpus).toHaveLength(1);
    expect(usage.gpus[0]).toMatchObject({
      index: 1,
      utilization: [undefined, 40, undefined],
      memory: [undefined, 25, undefined],
    });
  });
});

describe("usageHistory() of NUMA nodes", () => {
  it("should carry totals over, and leave gaps for unknown shares", () => {
    const health = create(NodeHealthSchema, {
      samples: [
        {
          usage: {
            numaNodes: [
              { id: 8, memoryUsedMib: 1, memoryTotalMib: 4 },
              { id: 0, cpuPercent: 7 },
            ],
          },
        },
        { usage: { numaNodes: [{ id: 8, cpuPercent: 5, memoryUsedMib: 2 }] } },
      ],
    });
    expect(usageHistory(health).numaNodes).toEqual([
      { id: 0, cpu: [7, undefined], memory: [undefined, undefined], memoryNow: null },
      { id: 8, cpu: [undefined, 5], memory: [25, 50], memoryNow: { usedMib: 2, totalMib: 4 } },
    ]);
  });
});

describe("percentOf()", () => {
  it("should be undefined for an unknown total", () => {
    expect(percentOf({ usedMib: 5, totalMib: 0 })).toBeUndefined();
    expect(percentOf(null)).toBeUndefined();
  });
});

describe("meanSeries()", () => {
  it("should take the mean of each sample", () => {
    expect(
      meanSeries([
        [10, undefined, 30],
        [30, undefined, undefined],
      ]),
    ).toEqual([20, undefined, 30]);
    expect(meanSeries([])).toEqual([]);
  });
});

describe("mostSeries()", () => {
  it("should take the maximum of each sample", () => {
    expect(mostSeries([[10, undefined, 30], [30, undefined], []])).toEqual([30, undefined, 30]);
    expect(mostSeries([])).toEqual([]);
  });
});
