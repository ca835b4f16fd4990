import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  NodeConditionSchema,
  type NodeInfo,
  NodeInfoSchema,
  type NumaNodeSchema,
  type NodeCondition as ProtoCondition,
} from "@rollcall/api/rollcall/node/v1/node_pb";
import {
  type NumaNodeUsageSchema,
  type ResourceUsage,
  ResourceUsageSchema,
} from "@rollcall/api/rollcall/node/v1/usage_pb";
import type { NodeCondition } from "@rollcall/domain";
import type { MachineFacts } from "./facts/machine-facts.ts";
import type { GpuReading, MachineUsage, NumaReading } from "./usage/machine-usage.ts";

/** The parts of a node's report other than its hardware. */
export interface NodeDescription {
  readonly agentVersion: string;
  readonly advertiseUrl: string;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Create a machine's report. Strings are cut to the contract's limits, so that a machine with a strange name is not
 * refused. fitNodeInfo() cuts the lists.
 */
export function toNodeInfo(facts: MachineFacts, description: NodeDescription): NodeInfo {
  const { operatingSystem: os, cpu, vm } = facts;
  return create(NodeInfoSchema, {
    hostname: cut(facts.hostname, 253),
    advertiseUrl: description.advertiseUrl,
    agentVersion: cut(description.agentVersion, 64),
    os: {
      family: cut(os.family, 64),
      name: cut(os.name, 256),
      kernel: cut(os.kernel, 256),
      architecture: cut(os.architecture, 64),
    },
    cpu: {
      model: cut(cpu.model, 256),
      sockets: uint32(cpu.sockets),
      cores: uint32(cpu.cores),
      threads: uint32(cpu.threads),
      ...(cpu.usableMillis !== undefined && { usableMillis: uint32(cpu.usableMillis) }),
    },
    ...(facts.memoryBytes !== undefined && { memoryBytes: BigInt(facts.memoryBytes) }),
    ...(facts.diskBytes !== undefined && { diskBytes: BigInt(facts.diskBytes) }),
    numaNodes: facts.numaNodes.map(toNumaNode),
    gpus: facts.gpus.map((gpu) => ({
      index: uint32(gpu.index),
      name: cut(gpu.name, 256),
      uuid: cut(gpu.uuid, 128),
      vendor: gpu.vendor,
      pciAddress: cut(gpu.pciAddress, 64),
      memoryMib: uint32(gpu.memoryMib),
      driverVersion: cut(gpu.driverVersion, 64),
      unusable: cut(gpu.unusable, 256),
    })),
    vm: { ...vm, message: cut(vm.message, 256) },
    vfioGpus: facts.vfioGpus.map((gpu) => ({
      pciAddress: cut(gpu.pciAddress, 64),
      vendorId: cut(gpu.vendorId, 16),
      deviceId: cut(gpu.deviceId, 16),
      iommuGroup: uint32(gpu.iommuGroup),
    })),
    interfaces: facts.interfaces.map((it) => ({
      name: cut(it.name, 64),
      mac: cut(it.mac, 64),
      addresses: it.addresses.map((address) => cut(address, 64)),
      speedMbps: uint32(it.speedMbps),
    })),
    labels: { ...description.labels },
    unknownFacts: facts.unknown.slice(0, 16).map(({ fact, reason, knownAtMs }) => ({
      fact,
      reason: cut(reason, 256),
      // Round down to whole seconds, because the digest of a report must not depend on how a probe failed.
      ...(knownAtMs !== null && { knownTime: timestampFromMs(Math.floor(knownAtMs / 1_000) * 1_000) }),
    })),
  });
}

const MOST_CONDITIONS = 16;

/** Conditions for a report, cut to the contract's limits. */
export function toConditions(conditions: readonly NodeCondition[]): ProtoCondition[] {
  return conditions
    .slice(0, MOST_CONDITIONS)
    .map(({ reason, message }) => create(NodeConditionSchema, { reason, message: cut(message, 512) }));
}

/** The maximum number of GPUs and NUMA nodes in one sample. */
const MOST_GPUS = 64;
const MOST_NUMA_NODES = 32;

/** The totals that the server already knows from this stream. A new stream starts with `NO_TOTALS`. */
export interface SentTotals {
  readonly memoryMib: number;
  readonly diskMib: number;
  /** The total memory of each GPU, keyed by index. */
  readonly gpuMemoryMib: ReadonlyMap<number, number>;
  /** The total memory of each NUMA node, keyed by id. */
  readonly numaMemoryMib: ReadonlyMap<number, number>;
}

/** The totals that a server knows at the start of a stream: none. */
export const NO_TOTALS: SentTotals = { memoryMib: 0, diskMib: 0, gpuMemoryMib: new Map(), numaMemoryMib: new Map() };

/** Create the usage for one beat, without totals that were already sent, and return the totals sent so far. */
export function toResourceUsage(
  usage: MachineUsage,
  sent: SentTotals,
): { readonly usage: ResourceUsage; readonly sent: SentTotals } {
  const memory = toSpace(usage.memory, sent.memoryMib);
  const disk = toSpace(usage.disk, sent.diskMib);
  const message = create(ResourceUsageSchema, {
    ...(usage.cpuPercent !== undefined && { cpuPercent: round(usage.cpuPercent) }),
    ...(memory.usedMib !== undefined && { memoryUsedMib: memory.usedMib }),
    memoryTotalMib: memory.newTotalMib,
    ...(disk.usedMib !== undefined && { diskUsedMib: disk.usedMib }),
    diskTotalMib: disk.newTotalMib,
    ...(usage.temperatures && {
      temperatureAverageCelsius: round(usage.temperatures.averageCelsius),
      temperatureMaxCelsius: round(usage.temperatures.maximumCelsius),
    }),
    gpusUnknown: usage.gpusUnknown,
    gpus: usage.gpus.slice(0, MOST_GPUS).map((gpu) => toGpuUsage(gpu, sent.gpuMemoryMib)),
    numaNodes: usage.numaNodes.slice(0, MOST_NUMA_NODES).map((node) => toNumaUsage(node, sent.numaMemoryMib)),
  });
  const gpuMemoryMib = new Map(sent.gpuMemoryMib);
  for (const { index, memoryTotalMib } of usage.gpus) {
    if (memoryTotalMib) gpuMemoryMib.set(index, uint32(memoryTotalMib));
  }
  const numaMemoryMib = new Map(sent.numaMemoryMib);
  for (const { id, memory: space } of usage.numaNodes) {
    if (space) numaMemoryMib.set(id, toMib(space.totalBytes));
  }
  return {
    usage: message,
    sent: { memoryMib: memory.totalMib, diskMib: disk.totalMib, gpuMemoryMib, numaMemoryMib },
  };
}

function toGpuUsage(gpu: GpuReading, sentMib: ReadonlyMap<number, number>) {
  const totalMib = uint32(gpu.memoryTotalMib);
  return {
    index: uint32(gpu.index),
    ...(gpu.utilizationPercent !== undefined && { utilizationPercent: gpu.utilizationPercent }),
    ...(gpu.memoryUsedMib !== undefined && { memoryUsedMib: uint32(gpu.memoryUsedMib) }),
    memoryTotalMib: totalMib === sentMib.get(gpu.index) ? 0 : totalMib,
    ...(gpu.temperatureCelsius !== undefined && { temperatureCelsius: gpu.temperatureCelsius }),
  };
}

function toNumaUsage(
  { id, cpuPercent, memory }: NumaReading,
  sentMib: ReadonlyMap<number, number>,
): MessageInitShape<typeof NumaNodeUsageSchema> {
  const space = toSpace(memory, sentMib.get(id) ?? 0);
  return {
    id: uint32(id),
    ...(space.usedMib !== undefined && { memoryUsedMib: space.usedMib }),
    memoryTotalMib: space.newTotalMib,
    ...(cpuPercent !== undefined && { cpuPercent: round(cpuPercent) }),
  };
}

function toSpace(
  space: MachineUsage["memory"],
  sentMib: number,
): { readonly usedMib: number | undefined; readonly totalMib: number; readonly newTotalMib: number } {
  if (space === undefined) return { usedMib: undefined, totalMib: sentMib, newTotalMib: 0 };
  const totalMib = toMib(space.totalBytes);
  return {
    usedMib: toMib(space.usedBytes),
    totalMib,
    newTotalMib: totalMib === sentMib ? 0 : totalMib,
  };
}

function toNumaNode(node: MachineFacts["numaNodes"][number]): MessageInitShape<typeof NumaNodeSchema> {
  return {
    id: uint32(node.id),
    cpus: cut(node.cpus, 1024),
    ...(node.memoryBytes !== undefined && { memoryBytes: BigInt(node.memoryBytes) }),
    distances: node.distances.map(uint32),
  };
}

function toMib(bytes: number): number {
  return uint32(Math.round(bytes / 1024 ** 2));
}

/**
 * Clamp a value to the field's range, because a tool can print any number, and encoding throws on values out of
 * range.
 */
function uint32(value: number | undefined): number {
  return Math.min(0xffff_ffff, Math.max(0, Math.trunc(value ?? 0)));
}

/** Round to one decimal. Sensors are not more precise. */
function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/**
 * Remove control characters, because strings of a device tree end with U+0000, and cut the string to `length`
 * characters.
 */
function cut(text: string | undefined, length: number): string {
  return (text ?? "").replace(/\p{Cc}/gu, "").slice(0, length);
}
