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

/** What a node says about itself beside its hardware. */
export interface NodeDescription {
  readonly agentVersion: string;
  readonly advertiseUrl: string;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Make the report of a machine. Texts are cut to the contract's limits: a machine with a strange name must not be
 * refused for it. Lists are cut by fitNodeInfo().
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
      usableMillis: uint32(cpu.usableMillis),
    },
    memoryBytes: BigInt(facts.memoryBytes ?? 0),
    diskBytes: BigInt(facts.diskBytes ?? 0),
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
      // Whole seconds: the digest of a report must not depend on how a probe failed.
      ...(knownAtMs !== null && { knownTime: timestampFromMs(Math.floor(knownAtMs / 1_000) * 1_000) }),
    })),
  });
}

const MOST_CONDITIONS = 16;

/** Conditions as they are reported, cut to the contract's limits. */
export function toConditions(conditions: readonly NodeCondition[]): ProtoCondition[] {
  return conditions
    .slice(0, MOST_CONDITIONS)
    .map(({ reason, message }) => create(NodeConditionSchema, { reason, message: cut(message, 512) }));
}

/** GPUs and NUMA nodes of one sample. */
const MOST_GPUS = 64;
const MOST_NUMA_NODES = 32;

/** The totals that a stream's server knows already. A new stream begins with `NO_TOTALS`. */
export interface SentTotals {
  readonly memoryMib: number;
  readonly diskMib: number;
  /** By index. */
  readonly gpuMemoryMib: ReadonlyMap<number, number>;
  /** By id. */
  readonly numaMemoryMib: ReadonlyMap<number, number>;
}

/** What a server knows at the beginning of a stream. */
export const NO_TOTALS: SentTotals = { memoryMib: 0, diskMib: 0, gpuMemoryMib: new Map(), numaMemoryMib: new Map() };

/** Make the usage of one beat, without the totals that were sent before, and say which totals have been sent then. */
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
    memoryBytes: BigInt(node.memoryBytes ?? 0),
    distances: node.distances.map(uint32),
  };
}

function toMib(bytes: number): number {
  return uint32(Math.round(bytes / 1024 ** 2));
}

/** What the wire can hold: encoding throws on anything beyond, and a tool may print any number. */
function uint32(value: number | undefined): number {
  return Math.min(0xffff_ffff, Math.max(0, Math.trunc(value ?? 0)));
}

/** One decimal is more than the sensors resolve. */
function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** At most so many characters, none of them a control character (a device tree ends its texts with U+0000). */
function cut(text: string | undefined, length: number): string {
  return (text ?? "").replace(/\p{Cc}/gu, "").slice(0, length);
}
