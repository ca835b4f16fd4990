import { COMMON_WORDS, GPU_WORDS, NUMA_NODE_WORDS } from "./sample-row.ts";

/** Number of samples kept per node. */
export const SAMPLES_KEPT = 60;
/** Number of words before all slots: the number of samples and the next row, and the totals. */
export const HEADER_WORDS = 6;
/** Number of words of each slot's header, before the rows: the id and the total. */
const SLOT_HEADER_WORDS = 4;
/** Limits from the API contract. */
export const MOST_GPU_SLOTS = 64;
export const MOST_NUMA_SLOTS = 32;

/**
 * The parts that can occur several times in a sample. Each GPU and NUMA node has a slot, and every row has a
 * value for each slot.
 */
export type PartKind = "gpus" | "numaNodes";

/**
 * The layout of a ring's block. Rings with the same number of slots share one layout, so it takes no memory
 * per node.
 */
export interface SampleShape {
  /** Number of slots for GPUs. */
  readonly gpus: number;
  /** Slots of NUMA nodes. */
  readonly numaNodes: number;
  /** Words of one row. */
  readonly rowWords: number;
  /** Words before the first row. */
  readonly firstRow: number;
  /** Words of the whole block. */
  readonly sizeWords: number;
}

const shapes = new Map<number, SampleShape>();

/** The shape with this many slots. */
export function shapeOf(gpus: number, numaNodes: number): SampleShape {
  const key = gpus * (MOST_NUMA_SLOTS + 1) + numaNodes;
  const known = shapes.get(key);
  if (known !== undefined) return known;
  const rowWords = COMMON_WORDS + gpus * GPU_WORDS + numaNodes * NUMA_NODE_WORDS;
  const firstRow = HEADER_WORDS + (gpus + numaNodes) * SLOT_HEADER_WORDS;
  const shape = { gpus, numaNodes, rowWords, firstRow, sizeWords: firstRow + SAMPLES_KEPT * rowWords };
  shapes.set(key, shape);
  return shape;
}

/** Offset in words from the start of the block to a slot's header. */
export function slotHeader(shape: SampleShape, kind: PartKind, slot: number): number {
  return HEADER_WORDS + (kind === "gpus" ? slot : shape.gpus + slot) * SLOT_HEADER_WORDS;
}

/** Offset in words from the start of a row to a slot's values. */
export function slotInRow(shape: SampleShape, kind: PartKind, slot: number): number {
  return kind === "gpus"
    ? COMMON_WORDS + slot * GPU_WORDS
    : COMMON_WORDS + shape.gpus * GPU_WORDS + slot * NUMA_NODE_WORDS;
}
