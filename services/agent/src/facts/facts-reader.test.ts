import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { createMachine } from "../machine/machine.ts";
import { type PlantedMachine, plantMachine } from "../testing/machine-tree.ts";
import { GPU_SERVER, LAPTOP, RASPBERRY_PI, VIRTUAL_MACHINE } from "../testing/recordings/machines.ts";
import { createFactsReader } from "./facts-reader.ts";
import { readOtherPlatform } from "./other-platform.ts";

const DISK = { value: 1024, unknown: null };

describe("createFactsReader()", () => {
  let planted: PlantedMachine;
  afterEach(() => planted?.remove());

  it("should combine all facts about a server", async () => {
    planted = await plantMachine(GPU_SERVER);
    const facts = await createFactsReader(planted.machine, tmpdir()).read();
    expect(facts).toMatchObject({
      hostname: "gpu-07",
      operatingSystem: { family: "linux", name: "Ubuntu 22.04.4 LTS", architecture: "x64" },
      cpu: { sockets: 2, cores: 112, threads: 224, usableMillis: 224_000 },
      memoryBytes: 2_113_389_768 * 1024,
      vm: { capable: true },
    });
    expect(facts.diskBytes).toBeGreaterThan(0);
    expect(facts.gpus).toHaveLength(8);
    expect(facts.numaNodes).toHaveLength(2);
  });

  it.each([
    ["a server", GPU_SERVER],
    ["a virtual machine", VIRTUAL_MACHINE],
    ["a Raspberry Pi", RASPBERRY_PI],
    ["a laptop", LAPTOP],
    ["nothing at all", {}],
  ])("should read %s twice to the same facts", async (_, recorded) => {
    planted = await plantMachine(recorded);
    const reader = createFactsReader(planted.machine, tmpdir());
    expect(await reader.read()).toEqual(await reader.read());
  });

  it("should report the container's memory and share if they are smaller", async () => {
    planted = await plantMachine({
      ...GPU_SERVER,
      files: {
        ...GPU_SERVER.files,
        "/proc/self/cgroup": "0::/\n",
        "/sys/fs/cgroup/cpu.max": "250000 100000\n",
        "/sys/fs/cgroup/memory.max": "4294967296\n",
      },
    });
    expect(await createFactsReader(planted.machine, tmpdir()).read()).toMatchObject({
      cpu: { threads: 224, usableMillis: 2_500 },
      memoryBytes: 4_294_967_296,
    });
  });

  it("should report the last known limits, or none, while the container's cannot be read", async () => {
    const limit = "/sys/fs/cgroup/memory.max";
    planted = await plantMachine({
      ...GPU_SERVER,
      files: {
        ...GPU_SERVER.files,
        "/proc/self/cgroup": "0::/\n",
        "/sys/fs/cgroup/cpu.max": "250000 100000\n",
        [limit]: "4294967296\n",
      },
    });
    const state = await mkdtemp(join(tmpdir(), "rollcall-facts-"));
    const never = createFactsReader(planted.machine, await mkdtemp(join(tmpdir(), "rollcall-facts-")));
    const reader = createFactsReader(planted.machine, state);
    await reader.read();
    await planted.write(limit, "?");
    await planted.write("/sys/fs/cgroup/cpu.max", "?");
    const unknown = [{ fact: "cpu.usable_millis" }, { fact: "memory_bytes" }];
    const cpu = { threads: 224, usableMillis: 2_500 };
    expect(await reader.read()).toMatchObject({ cpu, memoryBytes: 4_294_967_296, unknown });
    const facts = await never.read();
    expect(facts).toMatchObject({ cpu: { threads: 224, usableMillis: undefined }, unknown });
    expect(facts.memoryBytes).toBeUndefined();
  });

  it.each(["linux", "darwin"] as const)("should report an unreadable disk as unknown, on %s", async (os) => {
    planted = await plantMachine({ ...RASPBERRY_PI, system: { ...RASPBERRY_PI.system, platform: os } });
    const facts = await createFactsReader(planted.machine, "/no/such/directory").read();
    expect(facts.diskBytes).toBeUndefined();
    expect(facts.unknown).toEqual([
      { fact: "disk_bytes", reason: expect.stringContaining("/no/such/directory"), knownAtMs: null },
    ]);
  });

  it("should read the machine that this test runs on", async () => {
    const facts = await createFactsReader(createMachine(), tmpdir()).read();
    expect(facts.hostname).not.toBe("");
    expect(facts.cpu.threads).toBeGreaterThan(0);
    expect(facts.memoryBytes).toBeGreaterThan(0);
  });
});

describe("readOtherPlatform()", () => {
  it("should read a Mac through systeminformation", async () => {
    const planted = await plantMachine({
      system: {
        platform: "darwin",
        architecture: "arm64",
        kernel: "23.5.0",
        totalMemoryBytes: () => 36 * 1024 ** 3,
        addresses: () => [
          ...["fe80::1/64", "2001:db8::7/64", "192.168.1.5/24"].map((cidr) => ({
            interfaceName: "en0",
            cidr,
            address: cidr.replace(/\/\d+$/, ""),
            mac: "f0:18:98:01:02:03",
            internal: false,
          })),
        ],
      },
    });
    const facts = await readOtherPlatform(planted.machine, DISK, async () => ({
      osInfo: async () => ({ distro: "macOS", release: "14.5" }),
      cpu: async () => ({
        manufacturer: "Apple",
        brand: "M3 Pro",
        processors: 1,
        physicalCores: 12,
        cores: 12,
      }),
      mem: async () => Promise.reject(new Error("not asked for")),
    }));
    await planted.remove();
    expect(facts).toMatchObject({
      operatingSystem: { family: "darwin", name: "macOS 14.5", kernel: "23.5.0" },
      cpu: { model: "Apple M3 Pro", sockets: 1, cores: 12, threads: 12, usableMillis: 12_000 },
      memoryBytes: 36 * 1024 ** 3,
      vm: { capable: false, message: "KVM is not available on darwin", nested: false },
      interfaces: [{ name: "en0", mac: "f0:18:98:01:02:03", addresses: ["192.168.1.5/24"] }],
    });
  });

  it("should report what Node knows if systeminformation cannot be loaded", async () => {
    const planted = await plantMachine({ system: { platform: "freebsd", parallelism: () => 3 } });
    const facts = await readOtherPlatform(planted.machine, DISK, async () => undefined);
    await planted.remove();
    expect(facts.cpu).toEqual({
      model: undefined,
      sockets: 1,
      cores: 3,
      threads: 3,
      usableMillis: 3_000,
    });
  });
});
