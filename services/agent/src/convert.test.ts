import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { ResourceUsageSchema } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { NO_TOTALS, toNodeInfo, toResourceUsage } from "./convert.ts";
import { SMALL_FACTS, SMALL_USAGE } from "./testing/agent-harness.ts";

const DESCRIPTION = { agentVersion: "0.1.0", advertiseUrl: "http://a", labels: { zone: "a" } };
const HUGE = 1e15;

describe("toNodeInfo()", () => {
  it("should copy everything", () => {
    const info = toNodeInfo(
      {
        ...SMALL_FACTS,
        numaNodes: [{ id: 0, cpus: "0-7", memoryBytes: 1024, distances: [10] }],
        gpus: [
          {
            vendor: "NVIDIA",
            index: 0,
            name: "NVIDIA L4",
            uuid: "GPU-1",
            driverVersion: "550.1",
            pciAddress: "0000:01:00.0",
            memoryMib: 23_034,
            unusable: "",
          },
        ],
        vfioGpus: [{ pciAddress: "0000:02:00.0", vendorId: "10de", deviceId: "2330", iommuGroup: 7 }],
        interfaces: [{ name: "eth0", mac: "02:00:00:00:00:01", addresses: ["10.0.0.7/24"], speedMbps: 1000 }],
      },
      DESCRIPTION,
    );
    expect(info).toMatchObject({
      hostname: "node-1.example",
      advertiseUrl: "http://a",
      agentVersion: "0.1.0",
      cpu: { cores: 4, threads: 8, usableMillis: 8_000 },
      memoryBytes: 16n * 1024n ** 3n,
      numaNodes: [{ id: 0, cpus: "0-7", memoryBytes: 1024n, distances: [10] }],
      gpus: [{ index: 0, vendor: "NVIDIA", memoryMib: 23_034 }],
      vm: { capable: true },
      vfioGpus: [{ deviceId: "2330", iommuGroup: 7 }],
      interfaces: [{ name: "eth0", addresses: ["10.0.0.7/24"] }],
      labels: { zone: "a" },
    });
  });

  it("should cut texts that the contract would refuse, and encode whatever a machine reports", () => {
    const nic = { name: "e".repeat(99), mac: undefined, addresses: [], speedMbps: HUGE };
    const info = toNodeInfo(
      {
        ...SMALL_FACTS,
        hostname: "h".repeat(999),
        operatingSystem: { ...SMALL_FACTS.operatingSystem, name: "Pi\0\n4" },
        cpu: { ...SMALL_FACTS.cpu, model: undefined, threads: HUGE },
        interfaces: [nic],
      },
      DESCRIPTION,
    );
    expect(info.hostname).toHaveLength(253);
    expect(info.os?.name).toBe("Pi4");
    expect(info.interfaces[0]?.name).toHaveLength(64);
    expect(info.cpu?.threads).toBe(0xffff_ffff);
    expect(() => toBinary(NodeInfoSchema, info)).not.toThrow();
  });

  it("should omit amounts that are unknown, and keep those that are 0", () => {
    const unknown = { ...SMALL_FACTS, memoryBytes: undefined, diskBytes: 0 };
    const numaNodes = [{ id: 0, cpus: "0-7", memoryBytes: undefined, distances: [10] }];
    const facts = { ...unknown, cpu: { ...SMALL_FACTS.cpu, usableMillis: undefined }, numaNodes };
    const info = fromBinary(NodeInfoSchema, toBinary(NodeInfoSchema, toNodeInfo(facts, DESCRIPTION)));
    expect([info.memoryBytes, info.diskBytes, info.cpu?.usableMillis]).toEqual([undefined, 0n, undefined]);
    expect(info.numaNodes.map(({ memoryBytes }) => memoryBytes)).toEqual([undefined]);
  });
});

describe("toResourceUsage()", () => {
  const gpu = {
    index: 0,
    utilizationPercent: 50,
    memoryUsedMib: 10,
    memoryTotalMib: 80_000,
    temperatureCelsius: 60,
  };
  const numaNode = {
    id: 0,
    cpuPercent: 33.333,
    memory: { usedBytes: 512 * 1024 ** 2, totalBytes: 8 * 1024 ** 3 },
  };

  it("should omit only totals that were sent before", () => {
    const usage = { ...SMALL_USAGE, gpus: [gpu], numaNodes: [numaNode, { ...numaNode, id: 1, memory: undefined }] };
    const first = toResourceUsage(usage, NO_TOTALS);
    expect(first.usage).toMatchObject({
      memoryTotalMib: 16_384,
      diskTotalMib: 102_400,
      gpus: [{ memoryTotalMib: 80_000, temperatureCelsius: 60 }],
      numaNodes: [
        { id: 0, cpuPercent: 33.3, memoryUsedMib: 512, memoryTotalMib: 8_192 },
        { id: 1, memoryTotalMib: 0 },
      ],
    });
    const second = toResourceUsage(usage, first.sent);
    expect(second.usage).toMatchObject({
      memoryUsedMib: 4_096,
      memoryTotalMib: 0,
      diskUsedMib: 10_240,
      diskTotalMib: 0,
      gpus: [{ memoryUsedMib: 10, memoryTotalMib: 0 }],
      numaNodes: [{ id: 0, memoryUsedMib: 512, memoryTotalMib: 0 }, { id: 1 }],
    });
    expect(second.sent).toEqual(first.sent);
  });

  it("should cost tens of bytes once totals are known", () => {
    const { sent } = toResourceUsage(SMALL_USAGE, NO_TOTALS);
    const bytes = toBinary(ResourceUsageSchema, toResourceUsage(SMALL_USAGE, sent).usage);
    expect(bytes.length).toBeLessThan(20);
  });

  it("should remember totals while a reading is missing", () => {
    const { sent } = toResourceUsage(SMALL_USAGE, NO_TOTALS);
    const missing = toResourceUsage({ ...SMALL_USAGE, memory: undefined }, sent);
    expect(missing.usage.memoryTotalMib).toBe(0);
    // The first sample has no earlier sample to compare with, so its CPU usage is absent instead of 0.
    const unknown = toResourceUsage({ ...SMALL_USAGE, cpuPercent: undefined, gpusUnknown: true }, NO_TOTALS).usage;
    expect([unknown.cpuPercent, unknown.gpusUnknown]).toEqual([undefined, true]);
    expect(missing.sent).toEqual(sent);
  });

  it("should omit amounts that could not be read: they are not 0", () => {
    const unread = { ...SMALL_USAGE, memory: undefined, disk: undefined };
    const parts = {
      gpus: [
        { ...gpu, memoryUsedMib: undefined },
        { ...gpu, index: 1, memoryUsedMib: 0 },
      ],
      numaNodes: [{ ...numaNode, memory: undefined }],
    };
    const { usage } = toResourceUsage({ ...unread, ...parts }, NO_TOTALS);
    const read = fromBinary(ResourceUsageSchema, toBinary(ResourceUsageSchema, usage));
    expect([read.memoryUsedMib, read.diskUsedMib, read.numaNodes[0]?.memoryUsedMib]).toEqual(Array(3).fill(undefined));
    expect(read.gpus.map(({ memoryUsedMib }) => memoryUsedMib)).toEqual([undefined, 0]);
  });

  it("should omit temperatures and shares that are not measured", () => {
    const { usage } = toResourceUsage({ ...SMALL_USAGE, gpus: [{ ...gpu, temperatureCelsius: undefined }] }, NO_TOTALS);
    expect(usage.temperatureMaxCelsius).toBeUndefined();
    expect(usage.gpus[0]?.temperatureCelsius).toBeUndefined();
    const numaNodes = [{ ...numaNode, cpuPercent: undefined }, numaNode];
    const read = toResourceUsage({ ...SMALL_USAGE, numaNodes }, NO_TOTALS).usage;
    expect(read.numaNodes.map(({ cpuPercent }) => cpuPercent)).toEqual([undefined, 33.3]);
  });

  it("should encode whatever a tool prints", () => {
    const { usage } = toResourceUsage(
      {
        ...SMALL_USAGE,
        gpus: [{ ...gpu, index: HUGE, memoryUsedMib: HUGE, memoryTotalMib: HUGE }],
        numaNodes: Array.from({ length: 33 }, () => ({ ...numaNode, id: HUGE })),
      },
      NO_TOTALS,
    );
    expect(usage.numaNodes).toHaveLength(32);
    expect(() => toBinary(ResourceUsageSchema, usage)).not.toThrow();
  });
});
