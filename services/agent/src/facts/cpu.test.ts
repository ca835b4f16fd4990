import { afterEach, describe, expect, it } from "@jest/globals";
import type { ContainerLimits } from "../machine/container-limits.ts";
import { type PlantedMachine, plantMachine, type RecordedMachine } from "../testing/machine-tree.ts";
import {
  LAPTOP_CPUINFO,
  POWER_CPUINFO,
  RASPBERRY_CPUINFO,
  VIRTUAL_CPUINFO,
  XEON_CPUINFO,
} from "../testing/recordings/cpuinfo.ts";
import { topologyFiles } from "../testing/recordings/machines.ts";
import { parseCpuInfo, readCpu, usableMillis } from "./cpu.ts";

const UNLIMITED: ContainerLimits = {
  cpus: undefined,
  cpuSet: undefined,
  memoryBytes: undefined,
  memoryGroup: undefined,
  cpuGroup: undefined,
  cpuUnknown: undefined,
  memoryUnknown: undefined,
};

describe("parseCpuInfo()", () => {
  it.each([
    ["a Xeon server", XEON_CPUINFO, "Intel(R) Xeon(R) Platinum 8480C", "vmx"],
    ["a virtual machine", VIRTUAL_CPUINFO, "AMD EPYC 7R13 Processor", undefined],
    ["a laptop", LAPTOP_CPUINFO, "AMD Ryzen 7 PRO 6850U with Radeon Graphics", "svm"],
    ["a Raspberry Pi", RASPBERRY_CPUINFO, "ARM Cortex-A72", undefined],
    ["a POWER server", POWER_CPUINFO, "POWER9, altivec supported", undefined],
    ["nothing", "", undefined, undefined],
  ])("should read %s", (_, text, model, extension) => {
    expect(parseCpuInfo(text)).toEqual({ model, extension });
  });

  it("should name an unknown ARM part by its numbers", () => {
    expect(parseCpuInfo("CPU implementer\t: 0x99\nCPU part\t: 0x123\n").model).toBe("ARM implementer 0x99 part 0x123");
  });
});

describe("usableMillis()", () => {
  it.each([
    ["no limit", {}, 8_000],
    ["a share of CPU time", { cpus: 2.5 }, 2_500],
    ["a share above the machine", { cpus: 64 }, 8_000],
    ["a set of CPUs", { cpuSet: [0, 4, 5] }, 3_000],
    ["the smaller of both", { cpus: 1.25, cpuSet: [0, 1] }, 1_250],
    ["an empty set, which means no limit", { cpuSet: [] }, 8_000],
  ])("should handle %s", (_, limits, millis) => {
    expect(usableMillis(8, { ...UNLIMITED, ...limits })).toBe(millis);
  });
});

describe("readCpu()", () => {
  let planted: PlantedMachine | undefined;
  const plant = async (recorded: RecordedMachine) => {
    planted = await plantMachine(recorded);
    return planted.machine;
  };
  afterEach(() => planted?.remove());

  it("should count sockets, cores and threads by the lists of siblings", async () => {
    const machine = await plant({
      files: {
        "/proc/cpuinfo": XEON_CPUINFO,
        ...topologyFiles({ sockets: 2, coresEach: 8, threadsEach: 2 }),
      },
    });
    expect(await readCpu(machine, UNLIMITED)).toEqual({
      model: "Intel(R) Xeon(R) Platinum 8480C",
      sockets: 2,
      cores: 16,
      threads: 32,
      usableMillis: 32_000,
    });
  });

  it("should ignore CPUs that are offline", async () => {
    const machine = await plant({
      files: {
        ...topologyFiles({ sockets: 1, coresEach: 4, threadsEach: 1 }),
        "/sys/devices/system/cpu/online": "0,2-3\n",
      },
    });
    expect(await readCpu(machine, UNLIMITED)).toMatchObject({ sockets: 1, cores: 3, threads: 3 });
  });

  it("should fall back to Node's counts without /sys", async () => {
    const machine = await plant({ system: { parallelism: () => 6 } });
    expect(await readCpu(machine, UNLIMITED)).toEqual({
      model: undefined,
      sockets: 1,
      cores: 6,
      threads: 6,
      usableMillis: 6_000,
    });
  });
});
