import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { groupPaths, olderGroupPaths, parseCpuMax, readContainerLimits } from "./container-limits.ts";

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

/**
 * /proc/self/cgroup in a container on a host with version 1 of control groups. The names are those on the host, and
 * the roots of the mounts are the container's own groups.
 */
const DOCKER_V1 = [
  "12:cpuset:/docker/4f1c",
  "11:memory:/docker/4f1c",
  "5:cpu,cpuacct:/docker/4f1c",
  "1:name=systemd:/docker/4f1c",
  "0::/system.slice/containerd.service",
  "",
].join("\n");

describe("olderGroupPaths()", () => {
  it("should follow the hierarchy of each controller", () => {
    expect(olderGroupPaths(DOCKER_V1, "cpu")).toEqual([
      "/sys/fs/cgroup/cpu,cpuacct/docker/4f1c",
      "/sys/fs/cgroup/cpu,cpuacct/docker",
      "/sys/fs/cgroup/cpu,cpuacct",
    ]);
    expect(olderGroupPaths(DOCKER_V1, "memory")).toHaveLength(3);
    expect(olderGroupPaths("0::/\n", "memory")).toEqual([]);
  });
});

describe("parseCpuMax()", () => {
  it.each([
    ["max 100000", "none"],
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

  it("should use the tightest limit of the group and its ancestors", async () => {
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

  it("should not treat an unreadable limit as unlimited", async () => {
    planted = await plantMachine({
      files: {
        "/proc/self/cgroup": "0::/pod\n",
        // This makes cpu.max a directory, which cannot be read as a file.
        "/sys/fs/cgroup/pod/cpu.max/x": "",
        "/sys/fs/cgroup/pod/memory.max": "a lot\n",
        "/sys/fs/cgroup/memory.max": "1073741824\n",
      },
    });
    expect(await readContainerLimits(planted.machine)).toMatchObject({
      cpuUnknown: "/sys/fs/cgroup/pod/cpu.max cannot be read: EISDIR",
      memoryUnknown: "/sys/fs/cgroup/pod/memory.max contains no valid limit",
    });
    await planted.remove();
    planted = await plantMachine({ files: { "/proc/self/cgroup/x": "" } });
    const reason = "/proc/self/cgroup cannot be read: EISDIR";
    expect(await readContainerLimits(planted.machine)).toMatchObject({ cpuUnknown: reason, memoryUnknown: reason });
  });

  it("should use the limits of version 1, in a container and in a group of the machine", async () => {
    planted = await plantMachine({
      files: {
        "/proc/self/cgroup": DOCKER_V1,
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n",
        "/sys/fs/cgroup/cpuset/cpuset.effective_cpus": "0-3\n",
      },
    });
    expect(await readContainerLimits(planted.machine)).toEqual({
      cpus: 1.5,
      cpuGroup: "/sys/fs/cgroup/cpu,cpuacct",
      cpuSet: [0, 1, 2, 3],
      memoryBytes: 536_870_912,
      memoryGroup: "/sys/fs/cgroup/memory",
    });
    await planted.remove();
    planted = await plantMachine({
      files: {
        "/proc/self/cgroup": "8:memory:/user.slice\n4:cpu,cpuacct:/user.slice\n",
        "/sys/fs/cgroup/cpu,cpuacct/user.slice/cpu.cfs_quota_us": "-1\n",
        "/sys/fs/cgroup/cpu,cpuacct/user.slice/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/memory/user.slice/memory.limit_in_bytes": "1073741824\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
      },
    });
    expect(await readContainerLimits(planted.machine)).toMatchObject({
      cpus: undefined,
      memoryBytes: 1_073_741_824,
      memoryGroup: "/sys/fs/cgroup/memory/user.slice",
    });
  });

  it("should find no limits without control groups", async () => {
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
