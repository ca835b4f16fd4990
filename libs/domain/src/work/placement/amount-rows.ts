/** The amounts that a request needs, or that are free on a node. */
export interface Amounts {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
}

/** Whether free resources are sufficient. */
export function fits(free: Amounts, need: Amounts): boolean {
  return (
    free.millicores >= need.millicores &&
    free.memoryBytes >= need.memoryBytes &&
    free.diskBytes >= need.diskBytes &&
    free.gpus >= need.gpus
  );
}

const CORES = 0;
const MEMORY = 1;
const DISK = 2;
const GPUS = 3;
/** Numbers per row. */
const WIDTH = 4;

/**
 * Items with their amounts, in an order that the caller maintains. All amounts are in one contiguous array,
 * so that searching for a row that fits reads memory sequentially without touching the items.
 */
export class AmountRows<Item> {
  readonly items: Item[] = [];
  readonly #cells: number[] = [];

  get count(): number {
    return this.items.length;
  }

  insert(at: number, item: Item, { millicores, memoryBytes, diskBytes, gpus }: Amounts): void {
    this.items.splice(at, 0, item);
    this.#cells.splice(at * WIDTH, 0, millicores, memoryBytes, diskBytes, gpus);
  }

  remove(at: number): void {
    this.items.splice(at, 1);
    this.#cells.splice(at * WIDTH, WIDTH);
  }

  write(at: number, { millicores, memoryBytes, diskBytes, gpus }: Amounts): void {
    const cells = this.#cells;
    const first = at * WIDTH;
    cells[first + CORES] = millicores;
    cells[first + MEMORY] = memoryBytes;
    cells[first + DISK] = diskBytes;
    cells[first + GPUS] = gpus;
  }

  /** Move all rows from an index on to the end of `others`. */
  moveTo(others: AmountRows<Item>, from: number): void {
    others.items.push(...this.items.splice(from));
    others.#cells.push(...this.#cells.splice(from * WIDTH));
  }

  coresAt(at: number): number {
    return this.#cells[at * WIDTH + CORES] as number;
  }

  memoryAt(at: number): number {
    return this.#cells[at * WIDTH + MEMORY] as number;
  }

  /** The first row at or after an index that fits; -1 if there is none. */
  nextFit(from: number, need: Amounts): number {
    for (let at = from; at < this.count; at += 1) if (this.#fits(at, need)) return at;
    return -1;
  }

  /** The last row that fits, searching backwards from one index to another; -1 if there is none. */
  previousFit(from: number, to: number, need: Amounts): number {
    for (let at = from; at >= to; at -= 1) if (this.#fits(at, need)) return at;
    return -1;
  }

  /** The maximum of each amount over all rows. There must be at least one row. */
  most(): Amounts {
    const cells = this.#cells;
    let millicores = Number.NEGATIVE_INFINITY;
    let [memoryBytes, diskBytes, gpus] = [millicores, millicores, millicores];
    for (let first = 0; first < cells.length; first += WIDTH) {
      millicores = Math.max(millicores, cells[first + CORES] as number);
      memoryBytes = Math.max(memoryBytes, cells[first + MEMORY] as number);
      diskBytes = Math.max(diskBytes, cells[first + DISK] as number);
      gpus = Math.max(gpus, cells[first + GPUS] as number);
    }
    return { millicores, memoryBytes, diskBytes, gpus };
  }

  #fits(at: number, need: Amounts): boolean {
    const cells = this.#cells;
    const first = at * WIDTH;
    return (
      (cells[first + CORES] as number) >= need.millicores &&
      (cells[first + MEMORY] as number) >= need.memoryBytes &&
      (cells[first + DISK] as number) >= need.diskBytes &&
      (cells[first + GPUS] as number) >= need.gpus
    );
  }
}
