import { create } from "@bufbuild/protobuf";
import {
  type GpuUsage,
  GpuUsageSchema,
  type NumaNodeUsage,
  NumaNodeUsageSchema,
  type ResourceUsage,
  ResourceUsageSchema,
} from "@rollcall/api/rollcall/node/v1/usage_pb";

/** The totals of a ring. They rarely change, so they are stored once for all rows. */
export interface Totals {
  readonly memoryMib: number;
  readonly diskMib: number;
}

// Offsets in a row, in words of 16 bits. Whole numbers take two words. Percentages and temperatures take one, in
// hundredths, which exceeds the precision of sensors. The row of a machine with two GPUs takes 34 bytes, and 12 more
// with two NUMA nodes; a decoded message takes about 1,000 bytes.
const AT_WORD = 0;
const CPU_WORD = 2;
const MEMORY_WORD = 3;
const DISK_WORD = 5;
const AVERAGE_CELSIUS_WORD = 7;
const MAX_CELSIUS_WORD = 8;
/** Number of words of a row without GPUs and NUMA nodes. */
export const COMMON_WORDS = 9;
/** Number of words of each GPU: utilisation, memory (two), temperature. */
export const GPU_WORDS = 4;
/** Number of words of each NUMA node: its share of processors, memory (two). */
export const NUMA_NODE_WORDS = 3;

/** Marks a GPU or NUMA node that the sample lacks. */
const NO_PART = 0xffff;
/** Marks an unknown percentage. */
const NO_SHARE = 0xfffe;
const MOST_HUNDREDTHS = NO_SHARE - 1;
/** Represents an unknown amount. No machine has this amount, 4 PiB. */
const NO_AMOUNT = 0xffff_ffff;
/** Marks a missing temperature. Absolute zero is stored as 1. */
const NO_CELSIUS = 0;
const ZERO_CELSIUS_WORD = 27_316;

/** Write 32 bits into two words. */
export function writeUint32(words: Uint16Array, at: number, value: number): void {
  words[at] = value & 0xffff;
  words[at + 1] = value >>> 16;
}

/** Read 32 bits from two words. */
export function readUint32(words: Uint16Array, at: number): number {
  return word(words, at) + word(words, at + 1) * 0x1_0000;
}

/**
 * Write a row without its GPUs and NUMA nodes, which are written one by one. `atMs` is relative to the ring's epoch.
 */
export function writeRow(
  words: Uint16Array,
  at: number,
  { atMs, usage }: { readonly atMs: number; readonly usage: ResourceUsage },
): void {
  writeUint32(words, at + AT_WORD, atMs);
  words[at + CPU_WORD] = fromShare(usage.cpuPercent);
  writeUint32(words, at + MEMORY_WORD, fromAmount(usage.memoryUsedMib));
  writeUint32(words, at + DISK_WORD, fromAmount(usage.diskUsedMib));
  words[at + AVERAGE_CELSIUS_WORD] = fromCelsius(usage.temperatureAverageCelsius);
  words[at + MAX_CELSIUS_WORD] = fromCelsius(usage.temperatureMaxCelsius);
}

/** Write a GPU at an offset; `undefined` for none. */
export function writeGpu(words: Uint16Array, at: number, gpu?: GpuUsage): void {
  words[at] = gpu === undefined ? NO_PART : fromShare(gpu.utilizationPercent);
  if (gpu === undefined) return;
  writeUint32(words, at + 1, fromAmount(gpu.memoryUsedMib));
  words[at + 3] = fromCelsius(gpu.temperatureCelsius);
}

/** Write a NUMA node at an offset; `undefined` for none. */
export function writeNumaNode(words: Uint16Array, at: number, node?: NumaNodeUsage): void {
  words[at] = node === undefined ? NO_PART : fromShare(node.cpuPercent);
  if (node !== undefined) writeUint32(words, at + 1, fromAmount(node.memoryUsedMib));
}

/** The time of a row, relative to the ring's epoch. */
export function timeOfRow(words: Uint16Array, at: number): number {
  return readUint32(words, at + AT_WORD);
}

/** Read a row without its GPUs and NUMA nodes. */
export function readRow(words: Uint16Array, at: number, totals: Totals): ResourceUsage {
  const average = toCelsius(word(words, at + AVERAGE_CELSIUS_WORD));
  const max = toCelsius(word(words, at + MAX_CELSIUS_WORD));
  const memoryUsedMib = readAmount(words, at + MEMORY_WORD);
  const diskUsedMib = readAmount(words, at + DISK_WORD);
  return create(ResourceUsageSchema, {
    ...cpuPercentOf(word(words, at + CPU_WORD)),
    ...(memoryUsedMib === undefined ? {} : { memoryUsedMib }),
    memoryTotalMib: totals.memoryMib,
    ...(diskUsedMib === undefined ? {} : { diskUsedMib }),
    diskTotalMib: totals.diskMib,
    ...(average === null ? {} : { temperatureAverageCelsius: average }),
    ...(max === null ? {} : { temperatureMaxCelsius: max }),
  });
}

/** The id and total of a slot's GPU or NUMA node, which are stored once for all rows. */
export interface Slot {
  readonly id: number;
  readonly totalMib: number;
}

/** Read the GPU at an offset; null when the sample has none there. */
export function readGpu(words: Uint16Array, at: number, { id, totalMib }: Slot): GpuUsage | null {
  const utilization = word(words, at);
  if (utilization === NO_PART) return null;
  const celsius = toCelsius(word(words, at + 3));
  const memoryUsedMib = readAmount(words, at + 1);
  return create(GpuUsageSchema, {
    index: id,
    ...(utilization === NO_SHARE ? {} : { utilizationPercent: utilization / 100 }),
    ...(memoryUsedMib === undefined ? {} : { memoryUsedMib }),
    memoryTotalMib: totalMib,
    ...(celsius === null ? {} : { temperatureCelsius: celsius }),
  });
}

/** Read the NUMA node at an offset; null when the sample has none there. */
export function readNumaNode(words: Uint16Array, at: number, { id, totalMib }: Slot): NumaNodeUsage | null {
  const share = word(words, at);
  if (share === NO_PART) return null;
  const memoryUsedMib = readAmount(words, at + 1);
  return create(NumaNodeUsageSchema, {
    id,
    ...(memoryUsedMib === undefined ? {} : { memoryUsedMib }),
    memoryTotalMib: totalMib,
    ...cpuPercentOf(share),
  });
}

function word(words: Uint16Array, at: number): number {
  return words[at] ?? 0;
}

/** Clamp to the range; NaN becomes 0. */
function toHundredths(percent: number): number {
  return Math.max(0, Math.min(MOST_HUNDREDTHS, Math.round(percent * 100) || 0));
}

function cpuPercentOf(share: number): { readonly cpuPercent?: number } {
  return share === NO_SHARE ? {} : { cpuPercent: share / 100 };
}

function fromAmount(mib: number | undefined): number {
  return mib === undefined ? NO_AMOUNT : Math.min(mib, NO_AMOUNT - 1);
}

function readAmount(words: Uint16Array, at: number): number | undefined {
  const mib = readUint32(words, at);
  return mib === NO_AMOUNT ? undefined : mib;
}

function fromShare(percent: number | undefined): number {
  return percent === undefined || Number.isNaN(percent) ? NO_SHARE : toHundredths(percent);
}

function fromCelsius(celsius: number | undefined): number {
  if (celsius === undefined || Number.isNaN(celsius)) return NO_CELSIUS;
  const hundredths = Math.round(celsius * 100) + ZERO_CELSIUS_WORD;
  return Math.max(1, Math.min(0xffff, hundredths));
}

function toCelsius(value: number): number | null {
  return value === NO_CELSIUS ? null : (value - ZERO_CELSIUS_WORD) / 100;
}
