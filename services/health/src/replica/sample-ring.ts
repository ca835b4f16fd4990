import { create } from "@bufbuild/protobuf";
import {
  type GpuUsage,
  GpuUsageSchema,
  type ResourceUsage,
  ResourceUsageSchema,
} from "@rollcall/api/rollcall/node/v1/usage_pb";

/** How many samples of a node are kept. */
export const SAMPLES_KEPT = 60;

/** One sample as it comes out again. */
export interface Sample {
  /** When it was received, in milliseconds of the clock with which it was added. */
  readonly atMs: number;
  readonly usage: ResourceUsage;
}

// A row is a few 32-bit words, whole numbers and floats over the same memory: two GPUs take 60 bytes, where a decoded
// message takes a thousand. Totals hardly ever change and are not sent again, so they are kept once, not in each row.
const AT_WORD = 0;
const CPU_WORD = 1;
const MEMORY_WORD = 2;
const DISK_WORD = 3;
const AVERAGE_CELSIUS_WORD = 4;
const MAX_CELSIUS_WORD = 5;
const GPU_COUNT_WORD = 6;
const COMMON_WORDS = 7;
const GPU_WORDS = 4;
const FIRST_ROWS = 4;
/** A float that no temperature can be. */
const ABSENT = Number.NaN;

/** The last samples of one node, in as little memory as they need. It grows with the first samples. */
export class SampleRing {
  readonly #epochMs: number;
  #words: Uint32Array = new Uint32Array(0);
  #floats: Float32Array = new Float32Array(0);
  #gpuSlots = 0;
  /** How many rows there is room for. */
  #rows = 0;
  #next = 0;
  #count = 0;
  #memoryTotalMib = 0;
  #diskTotalMib = 0;
  #gpuTotalsMib: number[] = [];

  /** @param epochMs any time not after the first sample; the ring lasts for 49 days from it, then starts anew. */
  constructor(epochMs: number) {
    this.#epochMs = epochMs;
  }

  /** How many samples there are, 60 at most. */
  get size(): number {
    return this.#count;
  }

  /** Keep a sample, in place of the oldest once there are 60. */
  add(usage: ResourceUsage, nowMs: number): void {
    const { gpus } = usage;
    if (gpus.length > this.#gpuSlots) this.#reshape(this.#rows, gpus.length);
    if (this.#count === this.#rows && this.#rows < SAMPLES_KEPT) {
      this.#reshape(Math.min(SAMPLES_KEPT, Math.max(FIRST_ROWS, this.#rows * 2)), this.#gpuSlots);
    }
    const at = this.#next * this.#stride;
    const words = this.#words;
    const floats = this.#floats;
    words[at + AT_WORD] = nowMs - this.#epochMs;
    floats[at + CPU_WORD] = usage.cpuPercent;
    words[at + MEMORY_WORD] = usage.memoryUsedMib;
    words[at + DISK_WORD] = usage.diskUsedMib;
    floats[at + AVERAGE_CELSIUS_WORD] = usage.temperatureAverageCelsius ?? ABSENT;
    floats[at + MAX_CELSIUS_WORD] = usage.temperatureMaxCelsius ?? ABSENT;
    words[at + GPU_COUNT_WORD] = gpus.length;
    for (let slot = 0; slot < gpus.length; slot++) {
      this.#addGpu(at + COMMON_WORDS + slot * GPU_WORDS, slot, gpus[slot] as GpuUsage);
    }
    if (usage.memoryTotalMib !== 0) this.#memoryTotalMib = usage.memoryTotalMib;
    if (usage.diskTotalMib !== 0) this.#diskTotalMib = usage.diskTotalMib;
    this.#next = (this.#next + 1) % SAMPLES_KEPT;
    if (this.#count < SAMPLES_KEPT) this.#count += 1;
  }

  /** The samples, oldest first, with the totals that were last sent. */
  list(): Sample[] {
    const first = this.#count < SAMPLES_KEPT ? 0 : this.#next;
    return Array.from({ length: this.#count }, (_, age) =>
      this.#read((first + age) % SAMPLES_KEPT),
    );
  }

  /** The newest sample; null when there is none. */
  latest(): Sample | null {
    if (this.#count === 0) return null;
    return this.#read((this.#next + SAMPLES_KEPT - 1) % SAMPLES_KEPT);
  }

  get #stride(): number {
    return COMMON_WORDS + this.#gpuSlots * GPU_WORDS;
  }

  #addGpu(at: number, slot: number, gpu: GpuUsage): void {
    this.#words[at] = gpu.index;
    this.#floats[at + 1] = gpu.utilizationPercent;
    this.#words[at + 2] = gpu.memoryUsedMib;
    this.#floats[at + 3] = gpu.temperatureCelsius ?? ABSENT;
    if (gpu.memoryTotalMib !== 0) this.#gpuTotalsMib[slot] = gpu.memoryTotalMib;
  }

  /** Make room for more rows, or for more GPUs in each. */
  #reshape(rows: number, gpuSlots: number): void {
    const oldStride = this.#stride;
    const oldWords = this.#words;
    this.#rows = rows;
    this.#gpuSlots = gpuSlots;
    this.#words = new Uint32Array(rows * this.#stride);
    this.#floats = new Float32Array(this.#words.buffer);
    for (let row = 0; row < this.#count; row++) {
      const old = oldWords.subarray(row * oldStride, (row + 1) * oldStride);
      this.#words.set(old, row * this.#stride);
    }
  }

  #read(row: number): Sample {
    const at = row * this.#stride;
    const word = (offset: number) => this.#words[at + offset] ?? 0;
    const float = (offset: number) => this.#floats[at + offset] ?? 0;
    const average = float(AVERAGE_CELSIUS_WORD);
    const max = float(MAX_CELSIUS_WORD);
    const usage = create(ResourceUsageSchema, {
      cpuPercent: float(CPU_WORD),
      memoryUsedMib: word(MEMORY_WORD),
      memoryTotalMib: this.#memoryTotalMib,
      diskUsedMib: word(DISK_WORD),
      diskTotalMib: this.#diskTotalMib,
      ...(Number.isNaN(average) ? {} : { temperatureAverageCelsius: average }),
      ...(Number.isNaN(max) ? {} : { temperatureMaxCelsius: max }),
      gpus: Array.from({ length: word(GPU_COUNT_WORD) }, (_, slot) => this.#readGpu(at, slot)),
    });
    return { atMs: this.#epochMs + word(AT_WORD), usage };
  }

  #readGpu(row: number, slot: number): GpuUsage {
    const at = row + COMMON_WORDS + slot * GPU_WORDS;
    const celsius = this.#floats[at + 3] ?? ABSENT;
    return create(GpuUsageSchema, {
      index: this.#words[at] ?? 0,
      utilizationPercent: this.#floats[at + 1] ?? 0,
      memoryUsedMib: this.#words[at + 2] ?? 0,
      memoryTotalMib: this.#gpuTotalsMib[slot] ?? 0,
      ...(Number.isNaN(celsius) ? {} : { temperatureCelsius: celsius }),
    });
  }
}
