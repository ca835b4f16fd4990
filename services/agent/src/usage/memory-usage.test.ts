import { afterEach, describe, expect, it } from "@jest/globals";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { readMemoryUsage } from "./memory-usage.ts";

const MEMINFO = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 600 kB\n";

describe("readMemoryUsage()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted.remove());

  it("should count unavailable memory as used", async () => {
    planted = await plantMachine({ files: { "/proc/meminfo": MEMINFO } });
    expect(await readMemoryUsage(planted.machine)).toEqual({
      usedBytes: 400 * 1024,
      totalBytes: 1000 * 1024,
    });
  });

  it("should report the container if its limit is below the machine's memory", async () => {
    planted = await plantMachine({
      files: {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": "0::/\n",
        "/sys/fs/cgroup/memory.max": "512000\n",
        "/sys/fs/cgroup/memory.current": "300000\n",
        "/sys/fs/cgroup/memory.stat": "anon 100000\ninactive_file 120000\nactive_file 30000\n",
      },
    });
    expect(await readMemoryUsage(planted.machine)).toEqual({
      usedBytes: 180_000,
      totalBytes: 512_000,
    });
  });

  it("should report the container of version 1 too", async () => {
    planted = await plantMachine({
      files: {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": "9:memory:/docker/4f1c\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "512000\n",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": "300000\n",
        "/sys/fs/cgroup/memory/memory.stat": "inactive_file 1000\ntotal_inactive_file 120000\n",
      },
    });
    expect(await readMemoryUsage(planted.machine)).toEqual({
      usedBytes: 180_000,
      totalBytes: 512_000,
    });
  });

  it("should report the machine if the limit is above its memory", async () => {
    planted = await plantMachine({
      files: {
        "/proc/meminfo": MEMINFO,
        "/proc/self/cgroup": "0::/\n",
        "/sys/fs/cgroup/memory.max": "99999999999\n",
      },
    });
    expect((await readMemoryUsage(planted.machine))?.totalBytes).toBe(1000 * 1024);
  });

  it("should ask systeminformation on other platforms", async () => {
    planted = await plantMachine({ system: { platform: "darwin" } });
    const usage = await readMemoryUsage(planted.machine, async () => ({
      osInfo: async () => ({ distro: "", release: "" }),
      cpu: async () => ({ manufacturer: "", brand: "", processors: 1, physicalCores: 1, cores: 1 }),
      mem: async () => ({ total: 1000, available: 250 }),
    }));
    expect(usage).toEqual({ usedBytes: 750, totalBytes: 1000 });
    expect(await readMemoryUsage(planted.machine, async () => undefined)).toBeUndefined();
  });

  it("should return nothing if nothing can be read", async () => {
    planted = await plantMachine();
    expect(await readMemoryUsage(planted.machine)).toBeUndefined();
  });
});
