import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { busyPercent, createCpuMeter, parseGroupCpuMicros, parseProcStat } from "./cpu-usage.ts";

const stat = (cpu: string) => `cpu  ${cpu}\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 12345\n`;

describe("parseProcStat()", () => {
  it("should count waiting for disks as idle and stolen time as busy", () => {
    expect(parseProcStat(stat("100 10 50 800 40 0 5 20 30 3"))).toEqual({ busy: 185, total: 1025 });
  });

  it("should read kernels that print fewer columns", () => {
    expect(parseProcStat(stat("100 0 0 900"))).toEqual({ busy: 100, total: 1000 });
  });

  it("should return nothing for any other file", () => {
    expect(parseProcStat("intr 1 2 3")).toBeUndefined();
  });
});

describe("parseGroupCpuMicros()", () => {
  it("should read the time used", () => {
    expect(parseGroupCpuMicros("usage_usec 123456\nuser_usec 100\nsystem_usec 23\n")).toBe(123_456);
    expect(parseGroupCpuMicros("nr_periods 0\n")).toBeUndefined();
  });
});

describe("busyPercent()", () => {
  it.each([
    ["half", { busy: 0, total: 0 }, { busy: 50, total: 100 }, 50],
    ["no time", { busy: 5, total: 10 }, { busy: 5, total: 10 }, undefined],
    ["a counter that was reset", { busy: 5, total: 10 }, { busy: 1, total: 2 }, undefined],
    ["an idle counter that went back", { busy: 0, total: 0 }, { busy: 101, total: 100 }, 100],
    ["a busy counter that went back", { busy: 9, total: 0 }, { busy: 8, total: 100 }, 0],
  ])("should handle %s", (_, before, now, percent) => {
    expect(busyPercent(before, now)).toBe(percent);
  });
});

describe("createCpuMeter()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());

  it("should measure from one call to the next", async () => {
    planted = await plantMachine({ files: { "/proc/stat": stat("100 0 0 900 0 0 0 0 0 0") } });
    const meter = createCpuMeter(planted.machine, () => 0);
    expect(await meter()).toBeUndefined();
    await planted.write("/proc/stat", stat("175 0 0 925 0 0 0 0 0 0"));
    expect(await meter()).toBe(75);
  });

  it("should measure the container's own share if it has one", async () => {
    let nowMs = 1_000;
    planted = await plantMachine({
      files: {
        "/proc/stat": stat("0 0 0 900 0 0 0 0 0 0"),
        "/proc/self/cgroup": "0::/\n",
        "/sys/fs/cgroup/cpu.max": "50000 100000\n",
        "/sys/fs/cgroup/cpu.stat": "usage_usec 1000000\n",
      },
    });
    const meter = createCpuMeter(planted.machine, () => nowMs);
    await meter();
    nowMs += 10_000;
    await planted.write("/sys/fs/cgroup/cpu.stat", "usage_usec 2000000\n");
    // The group used 1 s of CPU time in 10 s. With its limit of half a CPU, this is 20 %.
    expect(await meter()).toBeCloseTo(20);
  });

  it("should measure the same under version 1", async () => {
    let nowMs = 1_000;
    const root = "/sys/fs/cgroup/cpu,cpuacct";
    planted = await plantMachine({
      files: {
        "/proc/stat": stat("0 0 0 900 0 0 0 0 0 0"),
        "/proc/self/cgroup": "5:cpu,cpuacct:/docker/4f1c\n",
        [`${root}/cpu.cfs_quota_us`]: "50000\n",
        [`${root}/cpu.cfs_period_us`]: "100000\n",
        [`${root}/cpuacct.usage`]: "1000000000000000\n",
      },
    });
    const meter = createCpuMeter(planted.machine, () => nowMs);
    await meter();
    nowMs += 10_000;
    await planted.write(`${root}/cpuacct.usage`, "1000001000000000\n");
    expect(await meter()).toBeCloseTo(20);
  });

  it("should measure through Node on other platforms", async () => {
    planted = await plantMachine({ system: { platform: "darwin" } });
    const meter = createCpuMeter(planted.machine, () => 0);
    expect(await meter()).toBeUndefined();
    const percent = (await meter()) ?? 0;
    expect(percent).toBeGreaterThanOrEqual(0);
    expect(percent).toBeLessThanOrEqual(100);
  });

  it("should return nothing if nothing can be read", async () => {
    planted = await plantMachine();
    const meter = createCpuMeter(planted.machine, () => 0);
    await meter();
    expect(await meter()).toBeUndefined();
  });
});
