import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { H100_USAGE, MIG_USAGE, RADEON_USAGE } from "../testing/recordings/gpu-tools.ts";
import { parseNvidiaUsage, parseRocmUsage, readNvidiaUsage, readRocmUsage } from "./gpu-usage.ts";

describe("parseNvidiaUsage()", () => {
  it("should read a server with eight GPUs", () => {
    const gpus = parseNvidiaUsage(H100_USAGE);
    expect(gpus).toHaveLength(8);
    expect(gpus[3]).toEqual({
      index: 3,
      utilizationPercent: 100,
      memoryUsedMib: 78_012,
      memoryTotalMib: 81_559,
      temperatureCelsius: 73,
    });
  });

  it("should omit what a split GPU does not report", () => {
    expect(parseNvidiaUsage(MIG_USAGE)).toEqual([
      {
        index: 0,
        utilizationPercent: undefined,
        memoryUsedMib: undefined,
        memoryTotalMib: undefined,
        temperatureCelsius: 47,
      },
      {
        index: 1,
        utilizationPercent: undefined,
        memoryUsedMib: 18_291,
        memoryTotalMib: 40_960,
        temperatureCelsius: 39,
      },
    ]);
  });
});

describe("parseRocmUsage()", () => {
  it("should prefer the hot spot's temperature", () => {
    expect(parseRocmUsage(RADEON_USAGE)).toEqual([
      {
        index: 0,
        utilizationPercent: 18,
        memoryUsedMib: 3_317,
        memoryTotalMib: 24_560,
        temperatureCelsius: 74,
      },
      {
        index: 1,
        utilizationPercent: 0,
        memoryUsedMib: 25,
        memoryTotalMib: 2_048,
        temperatureCelsius: 50,
      },
    ]);
  });
});

describe("readNvidiaUsage(), readRocmUsage()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());

  it("should return nothing while a tool does not answer", async () => {
    planted = await plantMachine({
      programs: {
        "nvidia-smi": { kind: "no-answer", cause: "timeout" },
        "rocm-smi": { kind: "no-answer", cause: "timeout" },
      },
    });
    expect(await readNvidiaUsage(planted.machine)).toBeUndefined();
    expect(await readRocmUsage(planted.machine)).toBeUndefined();
  });

  it("should report no GPUs without a tool", async () => {
    planted = await plantMachine();
    expect(await readNvidiaUsage(planted.machine)).toEqual([]);
    expect(await readRocmUsage(planted.machine)).toEqual([]);
  });
});
