import { tmpdir } from "node:os";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { CommandResult } from "../machine/run-command.ts";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { H100_USAGE, RADEON_USAGE } from "../testing/recordings/gpu-tools.ts";
import { GPU_SERVER, RASPBERRY_PI, VIRTUAL_MACHINE } from "../testing/recordings/machines.ts";
import { createGauge, createUsageSampler } from "./usage-sampler.ts";

describe("createUsageSampler()", () => {
  let planted: PlantedMachine;
  let clockMs = 0;
  const nowMs = () => clockMs;
  afterEach(() => planted.remove());

  it("should sample everything that the machine reports", async () => {
    planted = await plantMachine({
      ...RASPBERRY_PI,
      programs: { "nvidia-smi": H100_USAGE, "rocm-smi": RADEON_USAGE },
    });
    await planted.write("/proc/stat", "cpu 0 0 0 0\n");
    const sampler = createUsageSampler({
      machine: planted.machine,
      stateDirectory: tmpdir(),
      nowMs,
    });
    await sampler.refresh();
    await planted.write("/proc/stat", "cpu 40 0 0 60\n");
    await sampler.refresh();
    const usage = sampler.latest(1_000);
    expect(usage).toMatchObject({
      cpuPercent: 40,
      memory: { usedBytes: (3_884_376 - 3_300_000) * 1024, totalBytes: 3_884_376 * 1024 },
      temperatures: { maximumCelsius: 48.199 },
    });
    expect(usage.disk?.totalBytes).toBeGreaterThan(0);
    expect(usage.gpus).toHaveLength(10);
  });

  it("should sample the NUMA nodes of a machine that has several", async () => {
    planted = await plantMachine(GPU_SERVER);
    const sampler = createUsageSampler({ machine: planted.machine, stateDirectory: "/none", nowMs });
    await sampler.refresh();
    expect(sampler.latest(1_000).numaNodes.map(({ id }) => id)).toEqual([0, 1]);
  });

  it("should only have the available readings in a virtual machine", async () => {
    planted = await plantMachine(VIRTUAL_MACHINE);
    const sampler = createUsageSampler({
      machine: planted.machine,
      stateDirectory: "/none",
      nowMs,
    });
    expect(sampler.latest(1_000).memory).toBeUndefined();
    await sampler.refresh();
    expect(sampler.latest(1_000)).toEqual({
      cpuPercent: undefined,
      memory: { usedBytes: (3_943_412 - 3_012_345) * 1024, totalBytes: 3_943_412 * 1024 },
      disk: undefined,
      temperatures: undefined,
      gpus: [],
      gpusUnknown: false,
      numaNodes: [],
    });
  });

  it("should neither wait for a tool that hangs nor start it twice, and drop readings that are too old", async () => {
    planted = await plantMachine({ ...VIRTUAL_MACHINE, programs: { "nvidia-smi": H100_USAGE } });
    let calls = 0;
    let end = (_: CommandResult): void => {};
    const machine = {
      ...planted.machine,
      run: (program: string) => {
        if (program !== "nvidia-smi") return Promise.resolve({ kind: "missing" } as const);
        calls += 1;
        return calls === 1
          ? planted.machine.run(program, [])
          : new Promise<CommandResult>((resolve) => {
              end = resolve;
            });
      },
    };
    const sampler = createUsageSampler({ machine, stateDirectory: "/none", nowMs });
    await sampler.refresh();
    expect(sampler.latest(45_000).gpus).toHaveLength(8);
    clockMs += 40_000;
    const stuck = sampler.refresh();
    void sampler.refresh();
    expect(sampler.latest(45_000).gpus).toHaveLength(8);
    clockMs += 5_001;
    expect(sampler.latest(45_000).gpus).toEqual([]);
    expect(calls).toBe(2);
    end({ kind: "finished", exitCode: 0, stdout: H100_USAGE });
    await stuck;
    expect(sampler.latest(45_000).gpus).toHaveLength(8);
  });
});

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
  ])("should accept or drop a reading of age %d ms", async (ageMs, expected) => {
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
