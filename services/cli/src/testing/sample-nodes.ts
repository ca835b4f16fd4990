import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  ConnectionState,
  HealthState,
  LabelTier,
  MembershipState,
  type Node,
  NodeSchema,
  NodeType,
  SchedulingState,
} from "@rollcall/api/rollcall/node/v1/node_pb";

/** The wall time of every test: 2026-08-06 12:00:00Z. */
export const NOW_MS = Date.UTC(2026, 7, 6, 12);

const GIB = 1024n ** 3n;
const since = timestampFromMs(NOW_MS - 3 * 3_600_000);

/** A healthy, approved compute node with two GPUs; `changes` replaces whole fields. */
export function computeNode(id: string, changes: Partial<Node> = {}): Node {
  const node = create(NodeSchema, {
    id,
    type: NodeType.COMPUTE,
    membership: {
      state: MembershipState.APPROVED,
      since,
      reason: "AUTO_APPROVED",
      actor: "system",
    },
    connection: {
      state: ConnectionState.CONNECTED,
      since,
      reason: "SESSION_OPENED",
      actor: "replica:health-1",
    },
    health: { state: HealthState.HEALTHY, since, reason: "HEARTBEAT", actor: "replica:health-1" },
    scheduling: { state: SchedulingState.ELIGIBLE, since },
    mayTakeWork: true,
    info: {
      hostname: `${id}.example`,
      agentVersion: "0.1.0",
      os: {
        family: "linux",
        name: "Debian GNU/Linux 12",
        kernel: "6.1.0-18-amd64",
        architecture: "x64",
      },
      cpu: { model: "AMD EPYC 9654", sockets: 1, cores: 8, threads: 16, usableMillis: 16_000 },
      memoryBytes: 64n * GIB,
      diskBytes: 500n * GIB,
      numaNodes: [{ id: 0, cpus: "0-15", memoryBytes: 64n * GIB, distances: [10] }],
      gpus: [0, 1].map((index) => ({
        uuid: `GPU-${index}`,
        index,
        name: "NVIDIA H100",
        vendor: "NVIDIA",
        memoryMib: 81_559,
        driverVersion: "550.54",
      })),
      vm: { capable: false, message: "no /dev/kvm" },
      labels: { zone: "a", gpu: "h100" },
    },
    labels: [
      { key: "gpu", value: "h100", tier: LabelTier.AGENT },
      { key: "zone", value: "a", tier: LabelTier.AGENT },
    ],
    keyFingerprint: "SHA256:abc",
    etag: "e1",
    createTime: since,
    updateTime: since,
  });
  return Object.assign(node, changes);
}
