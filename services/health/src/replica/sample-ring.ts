import type { GpuUsage, ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import type { SamplePages, SamplePlace } from "./sample-pages.ts";
import {
  COMMON_WORDS,
  GPU_WORDS,
  readGpu,
  readRow,
  readUint32,
  timeOfRow,
  writeGpu,
  writeRow,
  writeUint32,
} from "./sample-row.ts";

/** How many samples of a node are kept. */
export const SAMPLES_KEPT = 60;

/** A stored sample: shares and temperatures to a hundredth, all else exact. */
export interface Sample {
  /** When it was received, by the clock of `add()`, in milliseconds. */
  readonly atMs: number;
  readonly usage: ResourceUsage;
}

/** The figures of one sample that can be summed. */
export interface UsageSummary {
  readonly cpuPercent: number;
  readonly memoryUsedMib: number;
  readonly memoryTotalMib: number;
  /** Null where there is no sensor. */
  readonly averageCelsius: number | null;
  readonly maxCelsius: number | null;
  readonly gpus: number;
  readonly gpusBusy: number;
}

/** A GPU below this utilisation counts as idle. */
const BUSY_PERCENT = 1;

// A place begins with a header: the number of samples and the next row, the totals, and for each GPU slot its index and
// total. The rows follow.
const NEXT_WORD = 0;
const COUNT_WORD = 1;
const MEMORY_TOTAL_WORD = 2;
const DISK_TOTAL_WORD = 4;
const HEADER_WORDS = 6;
const GPU_HEADER_WORDS = 4;
const MOST_GPU_SLOTS = 64;
/** Times have 32 bits, which is 49 days. */
const MOST_AGE_MS = 0xffff_ffff;

/** The last samples of one node, packed: 2 KiB with two GPUs. */
export class SampleRing {
  readonly #pages: SamplePages;
  #epochMs: number;
  #gpuSlots = 0;
  #place: SamplePlace;

  /** @param epochMs any time not after the first sample. 49 days later the ring starts over. */
  constructor(epochMs: number, pages: SamplePages) {
    this.#pages = pages;
    this.#epochMs = Math.floor(epochMs);
    this.#place = pages.take(sizeWords(0));
    this.#clear();
  }

  /** How many samples there are, 60 at most. */
  get size(): number {
    return this.#word(COUNT_WORD);
  }

  /** Add a sample, in place of the oldest once there are 60. */
  add(usage: ResourceUsage, nowMs: number): void {
    const ageMs = Math.max(0, Math.round(nowMs) - this.#epochMs);
    if (ageMs > MOST_AGE_MS) this.#clear(nowMs);
    this.#makeSlots(usage.gpus);
    const { words, at } = this.#place;
    const next = this.#word(NEXT_WORD);
    const row = this.#row(next);
    writeRow(words, row, { atMs: Math.max(0, Math.round(nowMs) - this.#epochMs), usage });
    for (let slot = 0; slot < this.#gpuSlots; slot++) writeGpu(words, row, slot);
    for (const gpu of usage.gpus) this.#addGpu(row, gpu);
    if (usage.memoryTotalMib !== 0) {
      writeUint32(words, at + MEMORY_TOTAL_WORD, usage.memoryTotalMib);
    }
    if (usage.diskTotalMib !== 0) writeUint32(words, at + DISK_TOTAL_WORD, usage.diskTotalMib);
    words[at + NEXT_WORD] = (next + 1) % SAMPLES_KEPT;
    words[at + COUNT_WORD] = Math.min(SAMPLES_KEPT, this.size + 1);
  }

  /** The samples, oldest first, with the last totals. */
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

  /** The summable figures of the newest sample; null when there is none. */
  summary(): UsageSummary | null {
    const latest = this.latest();
    if (latest === null) return null;
    const { usage } = latest;
    return {
      cpuPercent: usage.cpuPercent,
      memoryUsedMib: usage.memoryUsedMib,
      memoryTotalMib: usage.memoryTotalMib,
      averageCelsius: usage.temperatureAverageCelsius ?? null,
      maxCelsius: usage.temperatureMaxCelsius ?? null,
      gpus: usage.gpus.length,
      gpusBusy: usage.gpus.filter((gpu) => gpu.utilizationPercent >= BUSY_PERCENT).length,
    };
  }

  /** Free its memory. The ring must not be used afterwards. */
  release(): void {
    this.#pages.giveBack(this.#place, sizeWords(this.#gpuSlots));
  }

  #addGpu(row: number, gpu: GpuUsage): void {
    const { words } = this.#place;
    const slot = this.#slotOf(gpu.index);
    if (slot < 0) return;
    writeGpu(words, row, slot, gpu);
    if (gpu.memoryTotalMib !== 0) writeUint32(words, this.#slotAt(slot) + 2, gpu.memoryTotalMib);
  }

  /** Ensure a slot for each GPU. GPUs rarely change, so rows are moved once or twice in a ring's life. */
  #makeSlots(gpus: readonly GpuUsage[]): void {
    let added = 0;
    for (const { index } of gpus) if (this.#slotOf(index) < 0) added += 1;
    if (added === 0) return;
    if (this.#gpuSlots + added > MOST_GPU_SLOTS) {
      // Otherwise indices that never return would fill it.
      this.#reshape(0, false);
      added = gpus.length;
    }
    const first = this.#gpuSlots;
    this.#reshape(first + added, true);
    let slot = first;
    for (const { index } of gpus) {
      if (this.#slotOf(index, slot) >= 0) continue;
      writeUint32(this.#place.words, this.#slotAt(slot), index);
      slot += 1;
    }
  }

  /** Move to a place with room for so many GPUs in each row. */
  #reshape(gpuSlots: number, keepsRows: boolean): void {
    const before = this.#place;
    const slotsBefore = this.#gpuSlots;
    const place = this.#pages.take(sizeWords(gpuSlots));
    const { words, at } = place;
    words.set(before.words.subarray(before.at, before.at + HEADER_WORDS), at);
    const slots = keepsRows ? slotsBefore : 0;
    const headerAt = before.at + HEADER_WORDS;
    words.set(before.words.subarray(headerAt, headerAt + slots * GPU_HEADER_WORDS), at + HEADER_WORDS);
    words.fill(0, at + HEADER_WORDS + slots * GPU_HEADER_WORDS, at + firstRow(gpuSlots));
    for (let row = 0; keepsRows && row < this.size; row++) {
      const from = this.#row(row);
      const to = at + firstRow(gpuSlots) + row * rowWords(gpuSlots);
      words.set(before.words.subarray(from, from + rowWords(slotsBefore)), to);
      for (let slot = slotsBefore; slot < gpuSlots; slot++) writeGpu(words, to, slot);
    }
    this.#pages.giveBack(before, sizeWords(slotsBefore));
    this.#place = place;
    this.#gpuSlots = gpuSlots;
    if (!keepsRows) this.#clear();
  }

  #clear(epochMs = this.#epochMs): void {
    const { words, at } = this.#place;
    this.#epochMs = Math.floor(epochMs);
    words[at + NEXT_WORD] = 0;
    words[at + COUNT_WORD] = 0;
    if (this.#gpuSlots === 0) words.fill(0, at, at + HEADER_WORDS);
  }

  /** The slot of a GPU among the first ones; -1 when it has none. */
  #slotOf(index: number, among = this.#gpuSlots): number {
    for (let slot = 0; slot < among; slot++) {
      if (readUint32(this.#place.words, this.#slotAt(slot)) === index) return slot;
    }
    return -1;
  }

  #slotAt(slot: number): number {
    return this.#place.at + HEADER_WORDS + slot * GPU_HEADER_WORDS;
  }

  #row(row: number): number {
    return this.#place.at + firstRow(this.#gpuSlots) + row * rowWords(this.#gpuSlots);
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
    for (let slot = 0; slot < this.#gpuSlots; slot++) {
      const headerAt = this.#slotAt(slot);
      const kept = {
        index: readUint32(words, headerAt),
        totalMib: readUint32(words, headerAt + 2),
      };
      const gpu = readGpu(words, rowAt, slot, kept);
      if (gpu !== null) usage.gpus.push(gpu);
    }
    return { atMs: this.#epochMs + timeOfRow(words, rowAt), usage };
  }
}

function rowWords(gpuSlots: number): number {
  return COMMON_WORDS + gpuSlots * GPU_WORDS;
}

function firstRow(gpuSlots: number): number {
  return HEADER_WORDS + gpuSlots * GPU_HEADER_WORDS;
}

function sizeWords(gpuSlots: number): number {
  return firstRow(gpuSlots) + SAMPLES_KEPT * rowWords(gpuSlots);
}
