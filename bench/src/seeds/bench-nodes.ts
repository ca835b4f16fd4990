import { createHash, createPrivateKey } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type NodeInfo, NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { keyPairFromPem, type NodeKeyPair, privateKeyToPem } from "@rollcall/identity";

// The fixed beginning of the PKCS 8 form of an Ed25519 private key (RFC 8410). The 32 bytes of the seed
// follow it.
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const GIB = 1024n ** 3n;

export function benchNodeId(index: number): string {
  return `bench-${String(index).padStart(6, "0")}`;
}

/**
 * The key of the node with this index. It is always the same, so that loaders and seeds need not exchange
 * keys.
 */
export function benchNodeKey(index: number): NodeKeyPair {
  const seed = createHash("sha256").update(benchNodeId(index)).digest();
  const der = Buffer.concat([PKCS8_PREFIX, seed]);
  return keyPairFromPem(privateKeyToPem(createPrivateKey({ key: der, format: "der", type: "pkcs8" })));
}

/** The description that the node with this index reports: a machine with two GPUs, in one of ten zones. */
export function benchNodeInfo(index: number): NodeInfo {
  return create(NodeInfoSchema, {
    hostname: benchNodeId(index),
    agentVersion: "bench",
    os: { family: "linux", name: "Bench Linux 1", kernel: "6.1.0", architecture: "x64" },
    cpu: { model: "Bench CPU", sockets: 2, cores: 32, threads: 64, usableMillis: 64_000 },
    memoryBytes: 512n * GIB,
    diskBytes: 4_096n * GIB,
    numaNodes: [0, 1].map((id) => ({
      id,
      cpus: `${id * 32}-${id * 32 + 31}`,
      memoryBytes: 256n * GIB,
      distances: id === 0 ? [10, 21] : [21, 10],
    })),
    gpus: [0, 1].map((gpu) => ({
      index: gpu,
      name: "Bench GPU 80GB",
      uuid: `GPU-${index}-${gpu}`,
      vendor: "NVIDIA",
      pciAddress: `0000:${17 + gpu}:00.0`,
      memoryMib: 81_559,
      driverVersion: "550.54",
    })),
    vm: { capable: true, nested: true },
    interfaces: [{ name: "eth0", mac: "02:00:00:00:00:01", addresses: ["10.0.0.1/16"], speedMbps: 25_000 }],
    labels: { zone: `zone-${index % 10}`, rack: `rack-${index % 500}` },
  });
}
