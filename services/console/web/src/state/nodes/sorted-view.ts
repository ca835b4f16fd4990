import { NOT_APPROVED, type NodeRow } from "./node-row.ts";
import type { RowChange } from "./node-snapshot.ts";

/** The sort keys of nodes. */
export const ORDERS = {
  id: (row) => row.id,
  type: (row) => row.type,
  approval: (row) => row.membership.word,
  health: (row) => row.health.word,
  connection: (row) => row.connection.word,
  // Sort like the server, whose scheduling state is ELIGIBLE for machines that are not approved, too.
  scheduling: (row) => (row.scheduling.word === NOT_APPROVED ? "ELIGIBLE" : row.scheduling.word),
  labels: (row) => row.labelsText,
  cores: (row) => row.cores,
  memory: (row) => row.memoryBytes,
  disk: (row) => row.diskBytes,
  gpus: (row) => row.gpus,
  version: (row) => row.version,
  created: (row) => row.createdMs ?? 0,
  since: (row) => row.health.sinceMs ?? 0,
} as const satisfies Readonly<Record<string, (row: NodeRow) => string | number>>;

export type OrderBy = keyof typeof ORDERS;

/** Whether a search parameter is a sort key. */
export function isOrder(word: string): word is OrderBy {
  return Object.hasOwn(ORDERS, word);
}

/** The nodes that pass a test, sorted. Applying a change takes a binary search, however many nodes there are. */
export class SortedView {
  readonly #test: (row: NodeRow) => boolean;
  readonly #compare: (a: NodeRow, b: NodeRow) => number;
  readonly #order: { readonly by: OrderBy; readonly reversed: boolean };
  #rows: NodeRow[] = [];

  constructor(
    rows: Iterable<NodeRow>,
    test: (row: NodeRow) => boolean,
    order: { readonly by: OrderBy; readonly reversed: boolean },
  ) {
    this.#test = test;
    this.#compare = comparison(ORDERS[order.by], order.reversed);
    this.#order = order;
    this.reset(rows);
  }

  /** The rows; the view changes this array in place. */
  get rows(): readonly NodeRow[] {
    return this.#rows;
  }

  /** Replace all nodes. */
  reset(rows: Iterable<NodeRow>): void {
    const passing: NodeRow[] = [];
    for (const row of rows) if (this.#test(row)) passing.push(row);
    this.#rows = inOrder(passing, this.#order);
  }

  /** Apply changes. Returns whether any row of the view changed. */
  apply(changes: readonly RowChange[]): boolean {
    if (changes.length > MOST_SINGLE) return this.#rebuild(changes);
    let changed = false;
    for (const { before, after } of changes) {
      const was = before !== undefined && this.#test(before);
      const is = after !== undefined && this.#test(after);
      if (was && is && this.#replace(before, after)) {
        changed = true;
        continue;
      }
      if (was) changed = this.#remove(before) || changed;
      if (is) {
        this.#rows.splice(this.#position(after), 0, after);
        changed = true;
      }
    }
    return changed;
  }

  /** Sort everything again, which is cheaper when there are many changes at once. */
  #rebuild(changes: readonly RowChange[]): boolean {
    const latest = new Map(changes.map(({ before, after }) => [(after ?? before)?.id, after]));
    const kept = this.#rows.filter(({ id }) => !latest.has(id));
    const added = [...latest.values()].filter((row) => row !== undefined).filter(this.#test);
    const changed = kept.length !== this.#rows.length || added.length > 0;
    this.#rows = inOrder([...kept, ...added], this.#order);
    return changed;
  }

  /** Most changes leave a row in its position, and then nothing moves. */
  #replace(before: NodeRow, after: NodeRow): boolean {
    if (this.#compare(before, after) !== 0) return false;
    const at = this.#position(before);
    if (this.#rows[at]?.id !== before.id) return false;
    this.#rows[at] = after;
    return true;
  }

  #remove(row: NodeRow): boolean {
    const at = this.#position(row);
    if (this.#rows[at]?.id !== row.id) return false;
    this.#rows.splice(at, 1);
    return true;
  }

  #position(row: NodeRow): number {
    let [low, high] = [0, this.#rows.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#rows[middle];
      if (other !== undefined && this.#compare(other, row) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const MOST_SINGLE = 500;

/**
 * Sort rows as comparison() would. The input is nearly sorted by id, so sorting it by id takes one pass. In a fleet,
 * most sort keys have few distinct values, so rows are grouped by value and only the values are compared.
 */
function inOrder(rows: NodeRow[], { by, reversed }: { readonly by: OrderBy; readonly reversed: boolean }): NodeRow[] {
  if (!rows.every(isAfterPrevious)) rows.sort(byId);
  const ordered = by === "id" ? rows : grouped(rows, ORDERS[by]);
  return reversed ? ordered.reverse() : ordered;
}

/** Comparing neighbours is much cheaper than sorting, and most rows arrive in order. */
function isAfterPrevious(row: NodeRow, at: number, rows: readonly NodeRow[]): boolean {
  return at === 0 || (rows[at - 1]?.id ?? "") < row.id;
}

function byId(a: NodeRow, b: NodeRow): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

function grouped(rows: readonly NodeRow[], key: (row: NodeRow) => string | number): NodeRow[] {
  const groups = new Map<string | number, NodeRow[]>();
  for (const row of rows) {
    const value = key(row);
    const group = groups.get(value);
    if (group === undefined) groups.set(value, [row]);
    else group.push(row);
  }
  const values = [...groups.keys()].sort((a, b) => (a < b ? -1 : 1));
  return values.flatMap((value) => groups.get(value) ?? []);
}

/** Compare by key, then by id, so that the order never depends on when nodes arrived. */
export function comparison(key: (row: NodeRow) => string | number, reversed: boolean) {
  const sign = reversed ? -1 : 1;
  return (a: NodeRow, b: NodeRow): number => {
    const [x, y] = [key(a), key(b)];
    if (x !== y) return x < y ? -sign : sign;
    return sign * byId(a, b);
  };
}
