/** What a request needs of a node, and a node has left. */
export interface Amounts {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
}

/** Tell whether free resources are enough. */
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
/** Cells of a row. */
const WIDTH = 4;

/**
 * Items with their amounts, in an order that the caller keeps. The amounts lie side by side in one array of numbers:
 * to look for a row that fits reads memory in a line and touches no item.
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

  /** Move the rows from one on to the end of others. */
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

  /** The first row, from one on, that has what is needed; -1 for none. */
  nextFit(from: number, need: Amounts): number {
    for (let at = from; at < this.count; at += 1) if (this.#fits(at, need)) return at;
    return -1;
  }

  /** The last row, from one back to another, that has what is needed; -1 for none. */
  previousFit(from: number, to: number, need: Amounts): number {
    for (let at = from; at >= to; at -= 1) if (this.#fits(at, need)) return at;
    return -1;
  }

  /** The most that any row has, of each amount by itself; there is a row. */
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
