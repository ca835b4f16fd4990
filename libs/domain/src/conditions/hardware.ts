import { isJsonObject, type Json, type JsonObject } from "../events/events.ts";
import type { MembershipState } from "../states.ts";

/** The part of a node's hardware that conditions check. */
export interface Hardware {
  /** Logical processors; 0 if not reported. */
  readonly cores: number;
  /** The size of the memory; 0 if not reported. */
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** The GPUs that the node's drivers see. */
  readonly gpus: readonly HardwareGpu[];
  /** PCI addresses of GPUs that are reserved for virtual machines. */
  readonly vfioAddresses: readonly string[];
  /** Whether the GPUs are current. If not, `gpus` are the last known ones, or empty. */
  readonly areGpusKnown: boolean;
}

/** One GPU. Strings are empty if the driver does not report them. */
export interface HardwareGpu {
  readonly index: number;
  readonly uuid: string;
  readonly pciAddress: string;
}

/**
 * Read the hardware from a node's information (a NodeInfo as protobuf JSON); null if it contains none. Invalid values
 * are skipped.
 */
export function hardwareOf(info: Json | undefined): Hardware | null {
  if (!isJsonObject(info)) return null;
  const cpu = isJsonObject(info.cpu) ? info.cpu : {};
  return {
    cores: toNumber(cpu.threads) || toNumber(cpu.cores),
    memoryBytes: toNumber(info.memoryBytes),
    diskBytes: toNumber(info.diskBytes),
    gpus: toList(info.gpus).map((gpu) => ({
      index: toNumber(gpu.index),
      uuid: toText(gpu.uuid),
      pciAddress: toText(gpu.pciAddress),
    })),
    vfioAddresses: toList(info.vfioGpus).map(({ pciAddress }) => toText(pciAddress)),
    areGpusKnown: !toList(info.unknownFacts).some(({ fact }) => fact === "gpus" || fact === "vfio_gpus"),
  };
}

/** A resource that an agent may be unable to determine. */
export type WorkResource = (typeof WORK_RESOURCES)[number];

/** A resource that a node's agent cannot determine. */
export interface UnknownResource {
  readonly resource: WorkResource;
  /** The reason, for people; empty if the agent reports none. */
  readonly reason: string;
}

/** For each resource, the NodeInfo field that determines it. */
export const RESOURCE_FACTS: Readonly<Record<WorkResource, string>> = {
  cores: "cpu.usable_millis",
  memory: "memory_bytes",
  disk: "disk_bytes",
  gpus: "gpus",
};

/** The resources that a node's agent cannot determine, without duplicates. */
export function unknownResources(info: JsonObject): readonly UnknownResource[] {
  const facts = toList(info.unknownFacts);
  return WORK_RESOURCES.flatMap((resource) => {
    const found = facts.find(({ fact }) => fact === RESOURCE_FACTS[resource]);
    return found === undefined ? [] : [{ resource, reason: toText(found.reason) }];
  });
}

const WORK_RESOURCES = ["cores", "memory", "disk", "gpus"] as const;

/** The reason code for nodes on which a resource is unknown, keyed by resource. */
export const UNKNOWN_REASONS = {
  cores: "CORES_UNKNOWN",
  memory: "MEMORY_UNKNOWN",
  disk: "DISK_UNKNOWN",
  gpus: "GPUS_UNKNOWN",
} as const satisfies Readonly<Record<WorkResource, string>>;

/** Whether every execution uses a resource, even if it does not reserve any. True for all resources except GPUs. */
export function isUsedByAll(resource: WorkResource): boolean {
  return resource !== "gpus";
}

/** The facts that must be known before anything can be placed on a node. */
export const ESSENTIAL_FACTS: readonly string[] = WORK_RESOURCES.filter(isUsedByAll).map(
  (resource) => RESOURCE_FACTS[resource],
);

/** Whether a node's agent can determine the resources that every execution uses. */
export function knowsEssentials(info: JsonObject | null): boolean {
  return info === null || !unknownResources(info).some(({ resource }) => isUsedByAll(resource));
}

/** The facts about a node's hardware that events contain. */
export function hardwareFacts(hardware: Hardware): Json {
  const { cores, memoryBytes, diskBytes, gpus } = hardware;
  return { cores, memoryBytes, diskBytes, gpus: gpus.map(({ uuid }) => uuid) };
}

/** The fields of a node's information that are stored as its hardware. */
const HARDWARE_KEYS = ["cpu", "memoryBytes", "diskBytes", "gpus"] as const;

/**
 * Extract the hardware from a node's information, to store it as approved. GPUs that were never known are stored as
 * unknown.
 */
export function hardwareIn(info: JsonObject): JsonObject {
  const kept = HARDWARE_KEYS.flatMap((key) => (info[key] === undefined ? [] : [[key, info[key]] as const]));
  const unknown = neverKnownGpus(info);
  return { ...Object.fromEntries(kept), ...(unknown.length > 0 && { unknownFacts: unknown }) };
}

/**
 * Add facts to approved hardware that were unknown when the node was approved and are known now. Returns the same
 * object if nothing is added.
 */
export function completeHardware(approved: JsonObject, info: JsonObject): JsonObject {
  const known = hardwareOf(approved);
  const now = hardwareOf(info);
  if (known === null || now === null) return approved;
  const amounts = {
    ...(known.cores === 0 && now.cores > 0 && { cpu: info.cpu }),
    ...(known.memoryBytes === 0 && now.memoryBytes > 0 && { memoryBytes: info.memoryBytes }),
    ...(known.diskBytes === 0 && now.diskBytes > 0 && { diskBytes: info.diskBytes }),
  };
  if (neverKnownGpus(approved).length > 0 && neverKnownGpus(info).length === 0) {
    const { unknownFacts: _, ...rest } = approved;
    // Keep previously known GPUs that are missing now, so that they count as gone.
    const added = toList(info.gpus).filter((gpu) => !toList(approved.gpus).some((it) => isSameGpu(it, gpu)));
    return { ...rest, ...amounts, gpus: [...toList(approved.gpus), ...added] };
  }
  return Object.keys(amounts).length === 0 ? approved : { ...approved, ...amounts };
}

function neverKnownGpus(info: JsonObject): readonly JsonObject[] {
  return toList(info.unknownFacts).filter(({ fact, knownTime }) => fact === "gpus" && knownTime === undefined);
}

function isSameGpu(left: JsonObject, right: JsonObject): boolean {
  const uuid = toText(left.uuid);
  return uuid === "" ? toNumber(left.index) === toNumber(right.index) : uuid === toText(right.uuid);
}

/**
 * The hardware that counts as approved. If none was stored for an approved node, this is its last reported hardware.
 */
export function approvedHardwareIn(node: {
  readonly membership: MembershipState;
  /** The result of hardwareIn(); null if no hardware was stored. */
  readonly approved: JsonObject | null;
  readonly info: JsonObject | null;
}): JsonObject | null {
  return node.approved ?? (node.membership === "APPROVED" ? node.info : null);
}

/** Bytes as GiB with one decimal, for people. */
export function toGib(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(1);
}

function toList(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** Convert a number in protobuf JSON, which encodes 64-bit numbers as strings and omits 0. */
function toNumber(value: Json | undefined): number {
  const number = typeof value === "string" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : 0;
}

function toText(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
