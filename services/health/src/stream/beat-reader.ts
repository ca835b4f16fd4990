import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { Beat, HeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { GpuUsage, NumaNodeUsage, ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";

const tag = (field: number, type: WireType) => (field << 3) | type;

const BEAT_TAG = tag(2, WireType.LengthDelimited);

const BEAT = {
  sequence: tag(1, WireType.Varint),
  usage: tag(2, WireType.LengthDelimited),
  agentTimeMs: tag(3, WireType.Varint),
  settingsGeneration: tag(4, WireType.Varint),
  executionsDigest: tag(5, WireType.Bit64),
} as const;

const USAGE = {
  cpuPercent: tag(1, WireType.Bit32),
  memoryUsedMib: tag(2, WireType.Varint),
  memoryTotalMib: tag(3, WireType.Varint),
  diskUsedMib: tag(4, WireType.Varint),
  diskTotalMib: tag(5, WireType.Varint),
  temperatureAverageCelsius: tag(6, WireType.Bit32),
  temperatureMaxCelsius: tag(7, WireType.Bit32),
  gpus: tag(8, WireType.LengthDelimited),
  numaNodes: tag(9, WireType.LengthDelimited),
  gpusUnknown: tag(10, WireType.Varint),
} as const;

const GPU = {
  index: tag(1, WireType.Varint),
  utilizationPercent: tag(2, WireType.Bit32),
  memoryUsedMib: tag(3, WireType.Varint),
  memoryTotalMib: tag(4, WireType.Varint),
  temperatureCelsius: tag(5, WireType.Bit32),
} as const;

const NUMA_NODE = {
  id: tag(1, WireType.Varint),
  cpuPercent: tag(2, WireType.Bit32),
  memoryUsedMib: tag(3, WireType.Varint),
  memoryTotalMib: tag(4, WireType.Varint),
} as const;

const UNUSUAL = new Error("not a plain Beat");

/**
 * Decode HeartbeatRequest{beat}, as the generated code would. Returns null for any other frame, and for bytes that
 * are not a plain Beat of this version: unknown fields, a repeated singular field, malformed bytes. Hand-written
 * because every heartbeat needs it, and the generated decoder allocates eight times the size of the message.
 */
export function readBeatFrame(bytes: Uint8Array): HeartbeatRequest | null {
  if (bytes[0] !== BEAT_TAG) return null;
  try {
    const reader = new BinaryReader(bytes);
    reader.pos = 1;
    const value = readBeat(reader, endOf(reader, bytes.length));
    if (reader.pos !== bytes.length) return null;
    return { $typeName: "rollcall.health.v1.HeartbeatRequest", frame: { case: "beat", value } };
  } catch {
    return null;
  }
}

function readBeat(reader: BinaryReader, end: number): Beat {
  const beat: Beat = {
    $typeName: "rollcall.health.v1.Beat",
    sequence: 0,
    agentTimeMs: 0n,
    settingsGeneration: 0,
    executionsDigest: 0n,
  };
  while (reader.pos < end) {
    switch (reader.uint32()) {
      case BEAT.sequence:
        beat.sequence = reader.uint32();
        break;
      case BEAT.usage:
        // Leave repeated messages to the generated decoder, which merges them.
        if (beat.usage !== undefined) throw UNUSUAL;
        beat.usage = readUsage(reader, endOf(reader, end));
        break;
      case BEAT.agentTimeMs:
        beat.agentTimeMs = BigInt(reader.int64());
        break;
      case BEAT.settingsGeneration:
        beat.settingsGeneration = reader.uint32();
        break;
      case BEAT.executionsDigest:
        beat.executionsDigest = BigInt(reader.fixed64());
        break;
      default:
        throw UNUSUAL;
    }
  }
  return beat;
}

function readUsage(reader: BinaryReader, end: number): ResourceUsage {
  const usage: ResourceUsage = {
    $typeName: "rollcall.node.v1.ResourceUsage",
    memoryTotalMib: 0,
    diskTotalMib: 0,
    gpus: [],
    numaNodes: [],
    gpusUnknown: false,
  };
  while (reader.pos < end) {
    switch (reader.uint32()) {
      case USAGE.cpuPercent:
        usage.cpuPercent = reader.float();
        break;
      case USAGE.memoryUsedMib:
        usage.memoryUsedMib = reader.uint32();
        break;
      case USAGE.memoryTotalMib:
        usage.memoryTotalMib = reader.uint32();
        break;
      case USAGE.diskUsedMib:
        usage.diskUsedMib = reader.uint32();
        break;
      case USAGE.diskTotalMib:
        usage.diskTotalMib = reader.uint32();
        break;
      case USAGE.temperatureAverageCelsius:
        usage.temperatureAverageCelsius = reader.float();
        break;
      case USAGE.temperatureMaxCelsius:
        usage.temperatureMaxCelsius = reader.float();
        break;
      case USAGE.gpus:
        usage.gpus.push(readGpu(reader, endOf(reader, end)));
        break;
      case USAGE.numaNodes:
        usage.numaNodes.push(readNumaNode(reader, endOf(reader, end)));
        break;
      case USAGE.gpusUnknown:
        usage.gpusUnknown = reader.bool();
        break;
      default:
        throw UNUSUAL;
    }
  }
  return usage;
}

function readGpu(reader: BinaryReader, end: number): GpuUsage {
  const gpu: GpuUsage = {
    $typeName: "rollcall.node.v1.GpuUsage",
    index: 0,
    memoryTotalMib: 0,
  };
  while (reader.pos < end) {
    switch (reader.uint32()) {
      case GPU.index:
        gpu.index = reader.uint32();
        break;
      case GPU.utilizationPercent:
        gpu.utilizationPercent = reader.float();
        break;
      case GPU.memoryUsedMib:
        gpu.memoryUsedMib = reader.uint32();
        break;
      case GPU.memoryTotalMib:
        gpu.memoryTotalMib = reader.uint32();
        break;
      case GPU.temperatureCelsius:
        gpu.temperatureCelsius = reader.float();
        break;
      default:
        throw UNUSUAL;
    }
  }
  return gpu;
}

function readNumaNode(reader: BinaryReader, end: number): NumaNodeUsage {
  const node: NumaNodeUsage = {
    $typeName: "rollcall.node.v1.NumaNodeUsage",
    id: 0,
    memoryTotalMib: 0,
  };
  while (reader.pos < end) {
    switch (reader.uint32()) {
      case NUMA_NODE.id:
        node.id = reader.uint32();
        break;
      case NUMA_NODE.cpuPercent:
        node.cpuPercent = reader.float();
        break;
      case NUMA_NODE.memoryUsedMib:
        node.memoryUsedMib = reader.uint32();
        break;
      case NUMA_NODE.memoryTotalMib:
        node.memoryTotalMib = reader.uint32();
        break;
      default:
        throw UNUSUAL;
    }
  }
  return node;
}

/** Read a length, and return the offset where its message ends. */
function endOf(reader: BinaryReader, endOfParent: number): number {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > endOfParent) throw UNUSUAL;
  return end;
}
