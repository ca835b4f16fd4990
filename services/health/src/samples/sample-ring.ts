import type { GpuUsage, NumaNodeUsage, ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import type { SamplePages, SamplePlace } from "./sample-pages.ts";
import {
  readGpu,
  readNumaNode,
  readRow,
  readUint32,
  type Slot,
  timeOfRow,
  writeGpu,
  writeNumaNode,
  writeRow,
  writeUint32,
} from "./sample-row.ts";
import {
  HEADER_WORDS,
  MOST_GPU_SLOTS,
  MOST_NUMA_SLOTS,
  type PartKind,
  SAMPLES_KEPT,
  type SampleShape,
  shapeOf,
  slotHeader,
  slotInRow,
} from "./sample-shape.ts";

/**
 * A stored sample. Percentages and temperatures are rounded to 0.01, used amounts are below 4 PiB, the rest is exact.
 */
export interface Sample {
  /** When the sample was received, by the clock of `add()`, in milliseconds. */
  readonly atMs: number;
  readonly usage: ResourceUsage;
}

/** The values of one sample that can be summed. */
export interface UsageSummary {
  /** CPU usage in percent; null when unknown. */
  readonly cpuPercent: number | null;
  /** Used memory in MiB; null when unknown. */
  readonly memoryUsedMib: number | null;
  readonly memoryTotalMib: number;
  /** The average temperature; null without a sensor. */
  readonly averageCelsius: number | null;
  readonly maxCelsius: number | null;
  readonly gpus: number;
  readonly gpusBusy: number;
}

/** Utilisation in percent below which a GPU counts as idle. */
const BUSY_PERCENT = 1;

// Offsets in the header of a block, in words. The header contains the number of samples, the next row, the totals, and
// for each slot the id and total of its GPU or NUMA node. The rows follow.
const NEXT_WORD = 0;
const COUNT_WORD = 1;
const MEMORY_TOTAL_WORD = 2;
const DISK_TOTAL_WORD = 4;
const NO_SLOTS = shapeOf(0, 0);
const NO_NUMA_NODES: readonly NumaNodeUsage[] = [];
/** The highest age of a sample that fits into 32 bits: 49 days in milliseconds. */
const MOST_AGE_MS = 0xffff_ffff;

/**
 * The last samples of one node, packed: 2 KiB with two GPUs, and 368 bytes more for each NUMA node when there are
 * several.
 */
export class SampleRing {
  readonly #pages: SamplePages;
  #epochMs: number;
  #shape = NO_SLOTS;
  #place: SamplePlace;

  /** @param epochMs a time not later than the first sample. After 49 days the ring starts over. */
  constructor(epochMs: number, pages: SamplePages) {
    this.#pages = pages;
    this.#epochMs = Math.floor(epochMs);
    this.#place = pages.take(NO_SLOTS.sizeWords);
    const { words, at } = this.#place;
    words.fill(0, at, at + HEADER_WORDS);
  }

  /** Number of samples, at most 60. */
  get size(): number {
    return this.#word(COUNT_WORD);
  }

  /** Add a sample; once there are 60, it replaces the oldest. */
  add(usage: ResourceUsage, nowMs: number): void {
    const ageMs = Math.max(0, Math.round(nowMs) - this.#epochMs);
    if (ageMs > MOST_AGE_MS) this.#clear(nowMs);
    const numaNodes = severalOf(usage);
    this.#makeSlots(usage.gpus, numaNodes);
    const { words, at } = this.#place;
    const next = this.#word(NEXT_WORD);
    const row = this.#row(next);
    writeRow(words, row, { atMs: Math.max(0, Math.round(nowMs) - this.#epochMs), usage });
    this.#emptySlots(row, NO_SLOTS);
    for (const gpu of usage.gpus) this.#addGpu(row, gpu);
    for (const node of numaNodes) this.#addNumaNode(row, node);
    if (usage.memoryTotalMib !== 0) {
      writeUint32(words, at + MEMORY_TOTAL_WORD, usage.memoryTotalMib);
    }
    if (usage.diskTotalMib !== 0) writeUint32(words, at + DISK_TOTAL_WORD, usage.diskTotalMib);
    words[at + NEXT_WORD] = (next + 1) % SAMPLES_KEPT;
    words[at + COUNT_WORD] = Math.min(SAMPLES_KEPT, this.size + 1);
  }

  /** The samples, oldest first, each with the last totals. */
  list(): Sample[] {
    const { size } = this;
    const first = size < SAMPLES_KEPT ? 0 : this.#word(NEXT_WORD);
    return Array.from({ length: size }, (_, age) => this.#read((first + age) % SAMPLES_KEPT));
  }

  /** The newest sample; null when there is none. */
  latest(): Sample | null {
    if (this.size === 0) return null;
    return this.#read((this.#word(NEXT_WORD) + SAMPLES_KEPT - 1) % SAMPLES_KEPT);
  }

  /** The summable values of the newest sample; null when there is none. */
  summary(): UsageSummary | null {
    const latest = this.latest();
    if (latest === null) return null;
    const { usage } = latest;
    return {
      cpuPercent: usage.cpuPercent ?? null,
      memoryUsedMib: usage.memoryUsedMib ?? null,
      memoryTotalMib: usage.memoryTotalMib,
      averageCelsius: usage.temperatureAverageCelsius ?? null,
      maxCelsius: usage.temperatureMaxCelsius ?? null,
      gpus: usage.gpus.length,
      gpusBusy: usage.gpus.filter((gpu) => (gpu.utilizationPercent ?? 0) >= BUSY_PERCENT).length,
    };
  }

  /** Free the ring's memory. The ring must not be used afterwards. */
  release(): void {
    this.#pages.giveBack(this.#place, this.#shape.sizeWords);
  }

  #addGpu(row: number, gpu: GpuUsage): void {
    const { words } = this.#place;
    const slot = this.#slotOf("gpus", gpu.index);
    if (slot < 0) return;
    writeGpu(words, row + slotInRow(this.#shape, "gpus", slot), gpu);
    if (gpu.memoryTotalMib !== 0) writeUint32(words, this.#headerAt("gpus", slot) + 2, gpu.memoryTotalMib);
  }

  #addNumaNode(row: number, node: NumaNodeUsage): void {
    const { words } = this.#place;
    const slot = this.#slotOf("numaNodes", node.id);
    if (slot < 0) return;
    writeNumaNode(words, row + slotInRow(this.#shape, "numaNodes", slot), node);
    if (node.memoryTotalMib !== 0) writeUint32(words, this.#headerAt("numaNodes", slot) + 2, node.memoryTotalMib);
  }

  /**
   * Ensure that each GPU and NUMA node has a slot. A machine's GPUs and NUMA nodes rarely change, so rows are moved
   * once or twice in a ring's life.
   */
  #makeSlots(gpus: readonly GpuUsage[], numaNodes: readonly NumaNodeUsage[]): void {
    let newGpus = 0;
    let newNumaNodes = 0;
    for (const { index } of gpus) if (this.#slotOf("gpus", index) < 0) newGpus += 1;
    for (const { id } of numaNodes) if (this.#slotOf("numaNodes", id) < 0) newNumaNodes += 1;
    if (newGpus + newNumaNodes === 0) return;
    if (this.#shape.gpus + newGpus > MOST_GPU_SLOTS || this.#shape.numaNodes + newNumaNodes > MOST_NUMA_SLOTS) {
      // Start over, because slots of GPUs and NUMA nodes that never return would otherwise fill the ring.
      this.#reshape(NO_SLOTS, false);
      newGpus = gpus.length;
      newNumaNodes = numaNodes.length;
    }
    const before = this.#shape;
    this.#reshape(shapeOf(before.gpus + newGpus, before.numaNodes + newNumaNodes), true);
    let slot = before.gpus;
    for (const { index } of gpus) slot = this.#nameSlot("gpus", slot, index);
    slot = before.numaNodes;
    for (const { id } of numaNodes) slot = this.#nameSlot("numaNodes", slot, id);
  }

  /** Assign this slot to an id that has no earlier slot. Returns the next free slot. */
  #nameSlot(kind: PartKind, slot: number, id: number): number {
    if (this.#slotOf(kind, id, slot) >= 0) return slot;
    writeUint32(this.#place.words, this.#headerAt(kind, slot), id);
    return slot + 1;
  }

  /** Move to a block whose rows have room for the slots of a shape. */
  #reshape(shape: SampleShape, keepsRows: boolean): void {
    const from = this.#place;
    const before = this.#shape;
    const to = this.#pages.take(shape.sizeWords);
    const copy = (words: number, offset: number, target: number) =>
      to.words.set(from.words.subarray(from.at + offset, from.at + offset + words), to.at + target);
    copy(HEADER_WORDS, 0, 0);
    to.words.fill(0, to.at + HEADER_WORDS, to.at + shape.firstRow);
    this.#place = to;
    this.#shape = shape;
    if (keepsRows) {
      const numaHeaders = slotHeader(before, "numaNodes", 0);
      copy(numaHeaders - HEADER_WORDS, HEADER_WORDS, HEADER_WORDS);
      copy(before.firstRow - numaHeaders, numaHeaders, slotHeader(shape, "numaNodes", 0));
      for (let row = 0; row < this.size; row++) {
        const offset = before.firstRow + row * before.rowWords;
        const target = shape.firstRow + row * shape.rowWords;
        const numaNodes = slotInRow(before, "numaNodes", 0);
        copy(numaNodes, offset, target);
        copy(before.rowWords - numaNodes, offset + numaNodes, target + slotInRow(shape, "numaNodes", 0));
        this.#emptySlots(to.at + target, before);
      }
    } else {
      this.#clear();
    }
    this.#pages.giveBack(from, before.sizeWords);
  }

  /** Mark those slots of a row as empty that the previous, smaller shape did not have. */
  #emptySlots(row: number, { gpus, numaNodes }: SampleShape): void {
    const { words } = this.#place;
    const shape = this.#shape;
    for (let slot = gpus; slot < shape.gpus; slot++) writeGpu(words, row + slotInRow(shape, "gpus", slot));
    for (let slot = numaNodes; slot < shape.numaNodes; slot++) {
      writeNumaNode(words, row + slotInRow(shape, "numaNodes", slot));
    }
  }

  #clear(epochMs = this.#epochMs): void {
    const { words, at } = this.#place;
    this.#epochMs = Math.floor(epochMs);
    words[at + NEXT_WORD] = 0;
    words[at + COUNT_WORD] = 0;
  }

  /** The slot of a GPU or NUMA node among the first `among` slots; -1 when it has none. */
  #slotOf(kind: PartKind, id: number, among = this.#shape[kind]): number {
    for (let slot = 0; slot < among; slot++) {
      if (readUint32(this.#place.words, this.#headerAt(kind, slot)) === id) return slot;
    }
    return -1;
  }

  #headerAt(kind: PartKind, slot: number): number {
    return this.#place.at + slotHeader(this.#shape, kind, slot);
  }

  #slot(kind: PartKind, slot: number): Slot {
    const { words } = this.#place;
    const at = this.#headerAt(kind, slot);
    return { id: readUint32(words, at), totalMib: readUint32(words, at + 2) };
  }

  #row(row: number): number {
    return this.#place.at + this.#shape.firstRow + row * this.#shape.rowWords;
  }

  #word(offset: number): number {
    return this.#place.words[this.#place.at + offset] ?? 0;
  }

  #read(row: number): Sample {
    const { words, at } = this.#place;
    const rowAt = this.#row(row);
    const usage = readRow(words, rowAt, {
      memoryMib: readUint32(words, at + MEMORY_TOTAL_WORD),
      diskMib: readUint32(words, at + DISK_TOTAL_WORD),
    });
    const shape = this.#shape;
    for (let slot = 0; slot < shape.gpus; slot++) {
      const gpu = readGpu(words, rowAt + slotInRow(shape, "gpus", slot), this.#slot("gpus", slot));
      if (gpu !== null) usage.gpus.push(gpu);
    }
    for (let slot = 0; slot < shape.numaNodes; slot++) {
      const at = rowAt + slotInRow(shape, "numaNodes", slot);
      const node = readNumaNode(words, at, this.#slot("numaNodes", slot));
      if (node !== null) usage.numaNodes.push(node);
    }
    return { atMs: this.#epochMs + timeOfRow(words, rowAt), usage };
  }
}

/** The NUMA nodes to store. A single one is not stored, because its values are the machine's. */
function severalOf({ numaNodes }: ResourceUsage): readonly NumaNodeUsage[] {
  return numaNodes.length > 1 ? numaNodes : NO_NUMA_NODES;
}
