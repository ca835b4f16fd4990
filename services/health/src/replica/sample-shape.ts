import { COMMON_WORDS, GPU_WORDS, NUMA_NODE_WORDS } from "./sample-row.ts";

/** How many samples of a node are kept. */
export const SAMPLES_KEPT = 60;
/** Words before all slots: the number of samples and the next row, and the totals. */
export const HEADER_WORDS = 6;
/** Words of each slot before the rows: what it is of, and its total. */
const SLOT_HEADER_WORDS = 4;
/** Limits of the contract. */
export const MOST_GPU_SLOTS = 64;
export const MOST_NUMA_SLOTS = 32;

/** What a sample has several of: each has a slot, in which its figures are in every row. */
export type PartKind = "gpus" | "numaNodes";

/** How the place of a ring is laid out. Rings with as many slots share it, so it takes no memory of a node. */
export interface SampleShape {
  /** Slots of GPUs. */
  readonly gpus: number;
  /** Slots of NUMA nodes. */
  readonly numaNodes: number;
  /** Words of one row. */
  readonly rowWords: number;
  /** Words before the first row. */
  readonly firstRow: number;
  /** Words of the whole place. */
  readonly sizeWords: number;
}

const shapes = new Map<number, SampleShape>();

/** The shape with so many slots. */
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

/** Words from the beginning of the place to a slot's header. */
export function slotHeader(shape: SampleShape, kind: PartKind, slot: number): number {
  return HEADER_WORDS + (kind === "gpus" ? slot : shape.gpus + slot) * SLOT_HEADER_WORDS;
}

/** Words from the beginning of a row to a slot's figures. */
export function slotInRow(shape: SampleShape, kind: PartKind, slot: number): number {
  return kind === "gpus"
    ? COMMON_WORDS + slot * GPU_WORDS
    : COMMON_WORDS + shape.gpus * GPU_WORDS + slot * NUMA_NODE_WORDS;
}
