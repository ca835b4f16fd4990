import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { NodeHealthSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { addSample, NO_SAMPLES } from "./usage-series.ts";

const health = (init: MessageInitShape<typeof NodeHealthSchema>) => create(NodeHealthSchema, init);
const ago = (seconds: number) => ({ seconds: BigInt(seconds), nanos: 0 });

describe("addSample()", () => {
  it("should have lines for each GPU and each NUMA node, with gaps before they were seen", () => {
    const gpus = [{ index: 10, utilizationPercent: 5, memoryUsedMib: 1, memoryTotalMib: 4 }];
    const numaNodes = [
      { id: 8, cpuPercent: 50, memoryUsedMib: 3, memoryTotalMib: 4 },
      { id: 0, memoryUsedMib: 1 },
    ];
    const message = health({
      samples: [
        { age: ago(4), usage: { cpuPercent: 1 } },
        { age: ago(2), usage: { cpuPercent: 2, gpus, numaNodes } },
      ],
    });
    const series = addSample(NO_SAMPLES, message, 10_000);
    expect(series).toMatchObject({ times: [6, 8], gpus: [10], numaNodes: [0, 8] });
    expect(series.lines).toMatchObject({
      cpu: [1, 2],
      "gpu10-memory": [null, 25],
      numa8: [null, 50],
      "numa8-memory": [null, 75],
      numa0: [null, null],
      "numa0-memory": [null, null],
    });
  });

  it("should have a gap where no sample arrived for longer than three heartbeats", () => {
    const at = (seconds: number, heartbeat: number) =>
      health({ heartbeatInterval: ago(heartbeat), samples: [{ age: ago(seconds), usage: { cpuPercent: seconds } }] });
    const two = (first: number, second: number, heartbeat: number) =>
      addSample(addSample(NO_SAMPLES, at(first, heartbeat), 100_000), at(second, heartbeat), 100_000);
    expect(two(20, 10, 2)).toMatchObject({ times: [80, 90], lines: { cpu: [20, 10] } });
    expect(two(21, 10, 2)).toMatchObject({ times: [79, 84.5, 90], lines: { cpu: [21, null, 10] } });
    expect(two(60, 20, 15)).toMatchObject({ times: [40, 80], lines: { cpu: [60, 20] } });
    expect(two(66, 20, 15)).toMatchObject({ times: [34, 57, 80], lines: { cpu: [66, null, 20] } });
  });

  it("should have gaps where a share is unknown", () => {
    const known = { cpuPercent: 0, memoryUsedMib: 0, diskUsedMib: 1 };
    const totals = { memoryTotalMib: 4, diskTotalMib: 4 };
    const samples = [
      { age: ago(4), usage: { ...totals, gpus: [{ index: 0, memoryTotalMib: 4 }] } },
      {
        age: ago(2),
        usage: {
          ...known,
          ...totals,
          gpus: [{ index: 0, utilizationPercent: 0, memoryUsedMib: 1, memoryTotalMib: 4 }],
        },
      },
    ];
    expect(addSample(NO_SAMPLES, health({ samples }), 10_000).lines).toMatchObject({
      cpu: [null, 0],
      memory: [null, 0],
      disk: [null, 25],
      gpu0: [null, 0],
      "gpu0-memory": [null, 25],
    });
  });

  it("should add the latest sample once, and keep the last 120", () => {
    const at = (percent: number) => health({ latest: { age: ago(0), usage: { cpuPercent: percent } } });
    let series = NO_SAMPLES;
    for (let second = 0; second < 130; second++) series = addSample(series, at(second), second * 1_000);
    expect([series.times.length, series.times.at(0), series.lines.cpu?.at(-1)]).toEqual([120, 10, 129]);
    expect(addSample(series, at(1), 129_100)).toBe(series);
  });
});
