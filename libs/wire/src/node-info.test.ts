import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { type NodeInfo, NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { nodeInfoDigest, nodeInfoToRecord, nodeInfoViolations, recordToNodeInfo } from "./node-info.ts";

const machine = (): NodeInfo =>
  create(NodeInfoSchema, {
    hostname: "rack1-07",
    agentVersion: "0.1.0",
    os: { family: "linux", name: "Debian GNU/Linux 12", kernel: "6.1.0", architecture: "x64" },
    cpu: { model: "EPYC", sockets: 2, cores: 96, threads: 192, usableMillis: 192_000 },
    memoryBytes: 1_622_722_674_688n,
    diskBytes: 4_000_000_000_000n,
    numaNodes: [{ id: 0, cpus: "0-95", memoryBytes: 811_361_337_344n, distances: [10, 32] }],
    gpus: [
      { index: 0, name: "H100", uuid: "GPU-1", vendor: "NVIDIA", memoryMib: 81_559 },
      { index: 1, uuid: "GPU-2" },
      { index: 2 },
    ],
    vm: { capable: true },
    labels: { zone: "a", arch: "x64" },
  });

describe("nodeInfoToRecord()", () => {
  it("should keep everything that the message says", () => {
    const { info } = nodeInfoToRecord(machine());
    const overJsonb: typeof info = JSON.parse(JSON.stringify(info));
    expect(recordToNodeInfo(overJsonb)).toEqual(machine());
  });

  it("should add up what listings show", () => {
    expect(nodeInfoToRecord(machine())).toMatchObject({
      summary: { cores: 192, memoryBytes: 1_622_722_674_688, diskBytes: 4e12, gpus: 2 },
      agentLabels: { zone: "a", arch: "x64" },
    });
  });

  it("should count cores where the machine tells no threads, and none where it tells neither", () => {
    const cores = (cpu: object) => nodeInfoToRecord(create(NodeInfoSchema, { cpu })).summary.cores;
    expect(cores({ cores: 4 })).toBe(4);
    expect(cores({})).toBe(0);
    expect(nodeInfoToRecord(create(NodeInfoSchema)).summary.cores).toBe(0);
  });

  it("should cut sizes that no column could hold", () => {
    const info = create(NodeInfoSchema, { memoryBytes: 2n ** 64n - 1n });
    expect(nodeInfoToRecord(info).summary.memoryBytes).toBe(Number.MAX_SAFE_INTEGER);
    const many = create(NodeInfoSchema, { cpu: { threads: 2 ** 32 - 1 } });
    expect(nodeInfoToRecord(many).summary.cores).toBe(2 ** 31 - 1);
  });

  it("should give one digest to reports that differ in the order of labels alone", () => {
    const other = { ...machine(), labels: { arch: "x64", zone: "a" } };
    expect(nodeInfoToRecord(other).digest).toBe(nodeInfoToRecord(machine()).digest);
  });

  it.each([
    ["a label", { labels: { zone: "b", arch: "x64" } }],
    ["hardware that is gone", { gpus: [] }],
    ["the version", { agentVersion: "0.1.1" }],
  ])("should give another digest when %s changes", (_, change) => {
    const changed = create(NodeInfoSchema, { ...machine(), ...change });
    expect(nodeInfoToRecord(changed).digest).not.toBe(nodeInfoToRecord(machine()).digest);
  });

  it("should not take part in what a newer agent says beyond the contract", () => {
    const newer = new Uint8Array([...toBinary(NodeInfoSchema, machine()), 0xf8, 0x3f, 0x01]);
    const decoded = fromBinary(NodeInfoSchema, newer);
    expect(decoded.$unknown).toHaveLength(1);
    expect(nodeInfoToRecord(decoded).digest).toBe(nodeInfoToRecord(machine()).digest);
  });
});

describe("nodeInfoDigest()", () => {
  it("should be the binary form of the record's digest", () => {
    const hex = Buffer.from(nodeInfoDigest(machine())).toString("hex");
    expect(hex).toBe(nodeInfoToRecord(machine()).digest);
  });
});

describe("recordToNodeInfo()", () => {
  it.each([[null], ["text"], [{ hostname: 7 }], [[1]]])("should answer an empty message for %j", (row) => {
    expect(recordToNodeInfo(row)).toEqual(create(NodeInfoSchema));
  });

  it("should ignore what a newer version wrote", () => {
    expect(recordToNodeInfo({ hostname: "a", later: true }).hostname).toBe("a");
  });
});

describe("nodeInfoViolations()", () => {
  it("should find nothing wrong with an honest report", () => {
    expect(nodeInfoViolations(nodeInfoToRecord(machine()))).toEqual({ labels: [], others: [] });
  });

  it("should find labels that are the control plane's", () => {
    const info = create(NodeInfoSchema, { labels: { "rollcall.io/zone": "a" } });
    expect(nodeInfoViolations(nodeInfoToRecord(info)).labels).toHaveLength(1);
  });

  it("should find texts that Postgres cannot keep, at any depth", () => {
    const info = create(NodeInfoSchema, { hostname: "a\0b", gpus: [{ name: "\0" }] });
    const fields = nodeInfoViolations(nodeInfoToRecord(info)).others.map(({ field }) => field);
    expect(fields.sort()).toEqual(["info.gpus.0.name", "info.hostname"]);
  });
});
