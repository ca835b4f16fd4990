import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { type NodeInfo, NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { nodeInfoDigest, nodeInfoToRow, nodeInfoViolations, rowToNodeInfo } from "./node-info.ts";

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

describe("nodeInfoToRow()", () => {
  it("should keep everything in the message", () => {
    const { info } = nodeInfoToRow(machine());
    const overJsonb: typeof info = JSON.parse(JSON.stringify(info));
    expect(rowToNodeInfo(overJsonb)).toEqual(machine());
  });

  it("should add up the figures that listings show", () => {
    expect(nodeInfoToRow(machine())).toMatchObject({
      summary: { cores: 192, memoryBytes: 1_622_722_674_688, diskBytes: 4e12, gpus: 2 },
      agentLabels: { zone: "a", arch: "x64" },
    });
  });

  it("should count cores if the machine reports no threads, and none if it reports neither", () => {
    const cores = (cpu: object) => nodeInfoToRow(create(NodeInfoSchema, { cpu })).summary.cores;
    expect(cores({ cores: 4 })).toBe(4);
    expect(cores({})).toBe(0);
    expect(nodeInfoToRow(create(NodeInfoSchema)).summary.cores).toBe(0);
  });

  it("should cap sizes that exceed a column", () => {
    const info = create(NodeInfoSchema, { memoryBytes: 2n ** 64n - 1n });
    expect(nodeInfoToRow(info).summary.memoryBytes).toBe(Number.MAX_SAFE_INTEGER);
    const many = create(NodeInfoSchema, { cpu: { threads: 2 ** 32 - 1 } });
    expect(nodeInfoToRow(many).summary.cores).toBe(2 ** 31 - 1);
  });

  it("should give the same digest to reports that only differ in the order of labels", () => {
    const other = { ...machine(), labels: { arch: "x64", zone: "a" } };
    expect(nodeInfoToRow(other).digest).toBe(nodeInfoToRow(machine()).digest);
  });

  it.each([
    ["a label", { labels: { zone: "b", arch: "x64" } }],
    ["removed hardware", { gpus: [] }],
    ["the version", { agentVersion: "0.1.1" }],
  ])("should change the digest when %s changes", (_, change) => {
    const changed = create(NodeInfoSchema, { ...machine(), ...change });
    expect(nodeInfoToRow(changed).digest).not.toBe(nodeInfoToRow(machine()).digest);
  });

  it("should ignore fields of newer agents", () => {
    const newer = new Uint8Array([...toBinary(NodeInfoSchema, machine()), 0xf8, 0x3f, 0x01]);
    const decoded = fromBinary(NodeInfoSchema, newer);
    expect(decoded.$unknown).toHaveLength(1);
    expect(nodeInfoToRow(decoded).digest).toBe(nodeInfoToRow(machine()).digest);
  });
});

describe("nodeInfoDigest()", () => {
  it("should be the binary form of the row's digest", () => {
    const hex = Buffer.from(nodeInfoDigest(machine())).toString("hex");
    expect(hex).toBe(nodeInfoToRow(machine()).digest);
  });
});

describe("rowToNodeInfo()", () => {
  it.each([[null], ["text"], [{ hostname: 7 }], [[1]]])("should return an empty message for %j", (row) => {
    expect(rowToNodeInfo(row)).toEqual(create(NodeInfoSchema));
  });

  it("should ignore what a newer version wrote", () => {
    expect(rowToNodeInfo({ hostname: "a", later: true }).hostname).toBe("a");
  });
});

describe("nodeInfoViolations()", () => {
  it("should find nothing wrong with an honest report", () => {
    expect(nodeInfoViolations(nodeInfoToRow(machine()))).toEqual({ labels: [], others: [] });
  });

  it("should find labels reserved for the control plane", () => {
    const info = create(NodeInfoSchema, { labels: { "rollcall.io/zone": "a" } });
    expect(nodeInfoViolations(nodeInfoToRow(info)).labels).toHaveLength(1);
  });

  it("should find texts that Postgres cannot keep, at any depth", () => {
    const info = create(NodeInfoSchema, { hostname: "a\0b", gpus: [{ name: "\0" }] });
    const fields = nodeInfoViolations(nodeInfoToRow(info)).others.map(({ field }) => field);
    expect(fields.sort()).toEqual(["info.gpus.0.name", "info.hostname"]);
  });
});
