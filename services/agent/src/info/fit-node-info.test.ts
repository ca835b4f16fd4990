import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { createRequestValidator } from "@rollcall/rpc";
import { nodeInfoToRow, nodeInfoViolations } from "@rollcall/wire";
import { fitNodeInfo } from "./fit-node-info.ts";

const many = <T>(length: number, make: (index: number) => T): T[] => Array.from({ length }, (_, index) => make(index));

const fit = (init: MessageInitShape<typeof NodeInfoSchema>) => fitNodeInfo(create(NodeInfoSchema, init));

/** Return the problems that a server would find in a report. Throws if the report violates the contract. */
function wrongWith(info: ReturnType<typeof fit>["info"]) {
  createRequestValidator().check(NodeInfoSchema, info);
  const { labels, others } = nodeInfoViolations(nodeInfoToRow(info));
  return [...labels, ...others];
}

/** As large as machines get: 16 GPUs, 16 NUMA nodes, 512 logical processors with interleaved numbers, 64 labels. */
const LARGE_MACHINE: MessageInitShape<typeof NodeInfoSchema> = {
  hostname: "dgx-0001.rack-0001.example.com",
  advertiseUrl: "https://dgx-0001.rack-0001.example.com:7700",
  agentVersion: "1.22.333",
  os: { family: "linux", name: "Ubuntu 24.04.1 LTS", kernel: "6.8.0-1013-nvidia-64k" },
  cpu: { model: "AMD EPYC 9754 128-Core Processor", sockets: 2, cores: 256, threads: 512 },
  memoryBytes: 4_398_046_511_104n,
  diskBytes: 30_720_000_000_000n,
  numaNodes: many(16, (id) => ({
    id,
    cpus: many(32, (turn) => turn * 16 + id).join(","),
    memoryBytes: 274_877_906_944n,
    distances: many(16, () => 32),
  })),
  gpus: many(16, (index) => ({
    index,
    name: "NVIDIA H100 80GB HBM3",
    uuid: "GPU-12345678-1234-1234-1234-123456789abc",
    vendor: "NVIDIA",
    pciAddress: "0000:17:00.0",
    memoryMib: 81_559,
    driverVersion: "550.54.15",
  })),
  vm: { capable: true, nested: true },
  interfaces: many(24, (index) => ({
    name: `enp${index}s0f0np0`,
    mac: "02:42:ac:11:00:02",
    addresses: ["10.100.100.100/24", "2001:db8:1111:2222:3333:4444:5555:6666/64"],
    speedMbps: 400_000,
  })),
  labels: Object.fromEntries(many(64, (at) => [`hardware.example.com/key-${at}`, `value-${at}`])),
};

describe("fitNodeInfo()", () => {
  it("should leave a large machine as it is, far from the limit", () => {
    const { info, leftOut } = fit(LARGE_MACHINE);
    expect(info).toEqual(create(NodeInfoSchema, LARGE_MACHINE));
    expect(leftOut).toEqual([]);
    expect(wrongWith(info)).toEqual([]);
    expect(nodeInfoToRow(info).bytes).toBeLessThan(65_536 / 3);
  });

  it("should cut lists to the contract's limits, and report what it omitted", () => {
    const { info, leftOut } = fit({
      gpus: many(100, (index) => ({ index })),
      vfioGpus: many(65, () => ({})),
      numaNodes: many(130, () => ({ distances: [1] })),
      interfaces: many(200, () => ({ addresses: many(40, () => "10.0.0.1/8") })),
    });
    expect(wrongWith(info)).toEqual([]);
    expect(leftOut).toEqual([
      "72 of 200 interfaces",
      "3904 of 8000 addresses of interfaces",
      "1 of 65 vfio GPUs",
      "2 of 130 NUMA nodes",
      "2 of 130 distances of NUMA nodes",
      "36 of 100 GPUs",
    ]);
  });

  it("should omit the least important parts if the whole is too large", () => {
    const long = "x".repeat(64);
    const { info } = fit({
      ...LARGE_MACHINE,
      numaNodes: many(128, (id) => ({ id, distances: many(128, () => 4_294_967_295) })),
      interfaces: many(128, () => ({ name: long, mac: long, addresses: many(32, () => long) })),
    });
    expect(wrongWith(info)).toEqual([]);
    expect(info.gpus).toHaveLength(16);
    expect(info.numaNodes).toHaveLength(128);
    expect(info.interfaces.length).toBeGreaterThan(0);
    expect(Object.keys(info.labels)).toHaveLength(64);
  });

  it("should create an acceptable report for any machine", () => {
    const long = "\u{1F600}".repeat(32);
    const text = { name: long, uuid: long, vendor: long, pciAddress: long, driverVersion: long };
    const { info } = fit({
      ...LARGE_MACHINE,
      gpus: many(999, (index) => ({ index, ...text })),
      vfioGpus: many(999, () => ({ pciAddress: long })),
      numaNodes: many(999, () => ({ cpus: "1,".repeat(512), distances: many(999, () => 7) })),
      interfaces: many(999, () => ({ name: long, mac: long, addresses: many(99, () => long) })),
    });
    expect(wrongWith(info)).toEqual([]);
  });
});
