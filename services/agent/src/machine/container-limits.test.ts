import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { groupPaths, parseCpuMax, readContainerLimits } from "./container-limits.ts";

describe("groupPaths()", () => {
  it.each([
    ["0::/\n", ["/sys/fs/cgroup"]],
    [
      "0::/system.slice/a.service\n",
      ["/sys/fs/cgroup/system.slice/a.service", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"],
    ],
    ["12:cpu:/x\n0::/../../init.scope\n", ["/sys/fs/cgroup/init.scope", "/sys/fs/cgroup"]],
    ["9:name=systemd:/\n", []],
    ["", []],
  ])("should read %j", (text, paths) => {
    expect(groupPaths(text)).toEqual(paths);
  });
});

describe("parseCpuMax()", () => {
  it.each([
    ["max 100000", undefined],
    ["150000 100000", 1.5],
    ["100000 0", undefined],
    ["", undefined],
  ])("should read %j as %s", (text, cpus) => {
    expect(parseCpuMax(text)).toBe(cpus);
  });
});

describe("readContainerLimits()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());

  it("should take the tightest limit of the group and of those around it", async () => {
    planted = await plantMachine({
      files: {
        "/proc/self/cgroup": "0::/pod/app\n",
        "/sys/fs/cgroup/pod/app/cpu.max": "400000 100000\n",
        "/sys/fs/cgroup/pod/app/memory.max": "max\n",
        "/sys/fs/cgroup/pod/app/cpuset.cpus.effective": "0-2,8\n",
        "/sys/fs/cgroup/pod/cpu.max": "200000 100000\n",
        "/sys/fs/cgroup/pod/memory.max": "1073741824\n",
      },
    });
    expect(await readContainerLimits(planted.machine)).toEqual({
      cpus: 2,
      cpuGroup: "/sys/fs/cgroup/pod",
      cpuSet: [0, 1, 2, 8],
      memoryBytes: 1_073_741_824,
      memoryGroup: "/sys/fs/cgroup/pod",
    });
  });

  it("should know no limit where there are no control groups", async () => {
    planted = await plantMachine();
    expect(await readContainerLimits(planted.machine)).toEqual({
      cpus: undefined,
      cpuGroup: undefined,
      cpuSet: undefined,
      memoryBytes: undefined,
      memoryGroup: undefined,
    });
  });
});
