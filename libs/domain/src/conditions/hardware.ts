import { isJsonObject, type Json, type JsonObject } from "../events/events.ts";
import type { MembershipState } from "../states.ts";

/** What a node's hardware is, as far as it is held against it. */
export interface Hardware {
  /** Logical processors; 0 when it was not reported. */
  readonly cores: number;
  /** 0 when it was not reported. */
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** The GPUs that its own drivers see. */
  readonly gpus: readonly HardwareGpu[];
  /** PCI addresses of GPUs that are set aside for virtual machines. */
  readonly vfioAddresses: readonly string[];
  /** Whether the GPUs are those of now. If not, they are the last ones that were known, or none. */
  readonly areGpusKnown: boolean;
}

/** One GPU. Empty texts where the driver does not tell. */
export interface HardwareGpu {
  readonly index: number;
  readonly uuid: string;
  readonly pciAddress: string;
}

/**
 * Read the hardware out of a node's information, which is a NodeInfo as protobuf JSON; null for none. What makes no
 * sense is left out.
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
    areGpusKnown: !isUnknown(info, "gpus") && !isUnknown(info, "vfio_gpus"),
  };
}

/** Whether a node says of a fact, by its field's name, that it could not be determined. */
export function isUnknown(info: JsonObject, fact: string): boolean {
  return toList(info.unknownFacts).some((unknown) => unknown.fact === fact);
}

/** What events tell of a node's hardware. */
export function hardwareFacts(hardware: Hardware): Json {
  const { cores, memoryBytes, diskBytes, gpus } = hardware;
  return { cores, memoryBytes, diskBytes, gpus: gpus.map(({ uuid }) => uuid) };
}

/** What of a node's information is kept as its hardware. */
const HARDWARE_KEYS = ["cpu", "memoryBytes", "diskBytes", "gpus"] as const;

/**
 * The hardware in a node's information, in the same form: what is kept as approved. GPUs that are unknown, and of which
 * no last value is known, are kept as unknown.
 */
export function hardwareIn(info: JsonObject): JsonObject {
  const kept = HARDWARE_KEYS.flatMap((key) => (info[key] === undefined ? [] : [[key, info[key]] as const]));
  const unknown = neverKnownGpus(info);
  return { ...Object.fromEntries(kept), ...(unknown.length > 0 && { unknownFacts: unknown }) };
}

/**
 * Approved hardware with what was unknown when it was approved and is known for the first time now; the same object
 * where there is no such thing.
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
    // A GPU of the last known ones that is missing now stays approved: it is gone.
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

/** The hardware that counts as approved: of a node that was approved before this was kept, what it last reported. */
export function approvedHardwareIn(node: {
  readonly membership: MembershipState;
  /** As hardwareIn() made it; null where none was kept. */
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

/** 64-bit numbers are texts in protobuf JSON, and what is 0 is left out. */
function toNumber(value: Json | undefined): number {
  const number = typeof value === "string" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : 0;
}

function toText(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
