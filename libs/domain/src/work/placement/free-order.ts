import { AmountRows, type Amounts } from "./amount-rows.ts";

/** A node with its free resources. */
export interface FreeNode {
  readonly id: string;
  /**
   * The node's free resources. While an order contains the node, only the order changes them. Otherwise the node's
   * owner can.
   */
  free: Amounts;
}

/** A position in the order. */
export interface FreeKey {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly id: string;
}

/** Nodes stored contiguously. */
type Leaf<Node> = AmountRows<Node>;

/** Maximum number of nodes in a leaf. A larger leaf is split. */
const MOST_IN_LEAF = 64;

/** A node's position in the order. */
export function keyOf({ id, free }: FreeNode): FreeKey {
  return { millicores: free.millicores, memoryBytes: free.memoryBytes, id };
}

/** Whether a position comes before another. */
export function isBefore(one: FreeKey, other: FreeKey): boolean {
  const difference = one.millicores - other.millicores || one.memoryBytes - other.memoryBytes;
  return difference === 0 ? one.id < other.id : difference < 0;
}

/**
 * Nodes ordered by free cores, then free memory, then id. Nodes are stored in leaves of a few dozen, and the maximum
 * amounts of all leaves are contiguous in memory. A search therefore reads a few cache lines, while in a tree it would
 * follow pointers from node to node.
 */
export class FreeOrder<Node extends FreeNode> {
  /** The leaves in order, each with the maximum amounts of its nodes. No leaf is empty. */
  readonly #leaves = new AmountRows<Leaf<Node>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  insert(node: Node): void {
    this.#size += 1;
    const key = keyOf(node);
    const at = Math.min(this.#leafOf(key), this.#leaves.count - 1);
    const leaf = this.#leaves.items[at];
    if (leaf === undefined) {
      const first: Leaf<Node> = new AmountRows();
      first.insert(0, node, node.free);
      this.#leaves.insert(0, first, node.free);
      return;
    }
    leaf.insert(placeIn(leaf, key), node, node.free);
    if (leaf.count > MOST_IN_LEAF) this.#divide(at, leaf);
    else this.#leaves.write(at, leaf.most());
  }

  /** Remove a node. Its free resources must be unchanged since it was inserted or last changed. */
  remove(node: Node): void {
    const { at, leaf, place } = this.#find(node);
    this.#size -= 1;
    leaf.remove(place);
    const next = this.#leaves.items[at + 1];
    if (leaf.count === 0) {
      this.#leaves.remove(at);
      return;
    }
    if (next !== undefined && leaf.count + next.count <= MOST_IN_LEAF / 2) {
      next.moveTo(leaf, 0);
      this.#leaves.remove(at + 1);
    }
    this.#leaves.write(at, leaf.most());
  }

  /** Change the free resources of a node in the order. The node's position usually changes only a little. */
  change(node: Node, free: Amounts): void {
    const { at, leaf, place } = this.#find(node);
    const after = { millicores: free.millicores, memoryBytes: free.memoryBytes, id: node.id };
    const [above, below] = [leaf.items[place - 1], leaf.items[place + 1]];
    if (
      above === undefined ||
      below === undefined ||
      !isBefore(keyOf(above), after) ||
      !isBefore(after, keyOf(below))
    ) {
      this.remove(node);
      node.free = free;
      this.insert(node);
      return;
    }
    node.free = free;
    leaf.write(place, free);
    this.#leaves.write(at, leaf.most());
  }

  /**
   * Search forwards from a position, including the position itself. Returns the first node that fits and that `accept`
   * accepts.
   */
  firstFit(need: Amounts, from: FreeKey | null, accept: (node: Node) => boolean): Node | null {
    const leaves = this.#leaves;
    const first = from === null ? -1 : this.#leafOf(from);
    const least = Math.max(first, this.#firstLeafWith(need.millicores));
    for (let at = leaves.nextFit(least, need); at >= 0; at = leaves.nextFit(at + 1, need)) {
      const leaf = leaves.items[at] as Leaf<Node>;
      const start = from !== null && at === first ? placeIn(leaf, from) : 0;
      for (let place = leaf.nextFit(start, need); place >= 0; place = leaf.nextFit(place + 1, need)) {
        const node = leaf.items[place] as Node;
        if (accept(node)) return node;
      }
    }
    return null;
  }

  /**
   * Search backwards from a position, excluding the position itself. Returns the last node that fits and that `accept`
   * accepts.
   */
  lastFit(need: Amounts, before: FreeKey | null, accept: (node: Node) => boolean): Node | null {
    const leaves = this.#leaves;
    const last = before === null ? leaves.count : this.#leafOf(before);
    const least = this.#firstLeafWith(need.millicores);
    const from = Math.min(last, leaves.count - 1);
    for (let at = leaves.previousFit(from, least, need); at >= 0; at = leaves.previousFit(at - 1, least, need)) {
      const leaf = leaves.items[at] as Leaf<Node>;
      const start = before !== null && at === last ? placeIn(leaf, before) - 1 : leaf.count - 1;
      for (let place = leaf.previousFit(start, 0, need); place >= 0; place = leaf.previousFit(place - 1, 0, need)) {
        const node = leaf.items[place] as Node;
        if (accept(node)) return node;
      }
    }
    return null;
  }

  /**
   * The number of nodes that have too little of each needed resource. A node counts for each resource that it lacks.
   */
  countShort(need: Amounts): Amounts {
    let [millicores, memoryBytes, diskBytes, gpus] = [0, 0, 0, 0];
    for (const { free } of this.nodes()) {
      if (free.millicores < need.millicores) millicores += 1;
      if (free.memoryBytes < need.memoryBytes) memoryBytes += 1;
      if (free.diskBytes < need.diskBytes) diskBytes += 1;
      if (free.gpus < need.gpus) gpus += 1;
    }
    return { millicores, memoryBytes, diskBytes, gpus };
  }

  /** All nodes, in order. */
  *nodes(): Generator<Node> {
    for (const leaf of this.#leaves.items) yield* leaf.items;
  }

  #divide(at: number, leaf: Leaf<Node>): void {
    const second: Leaf<Node> = new AmountRows();
    leaf.moveTo(second, leaf.count >> 1);
    this.#leaves.write(at, leaf.most());
    this.#leaves.insert(at + 1, second, second.most());
  }

  #find(node: Node) {
    const key = keyOf(node);
    const at = this.#leafOf(key);
    const leaf = this.#leaves.items[at];
    const place = leaf === undefined ? -1 : placeIn(leaf, key);
    if (leaf === undefined || leaf.items[place] !== node) throw new Error(`node ${node.id} is not where it should be`);
    return { at, leaf, place };
  }

  /** The first leaf whose end is not before a position; the number of leaves if there is none. */
  #leafOf(key: FreeKey): number {
    const leaves = this.#leaves;
    let [low, high] = [0, leaves.count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (endsBefore(leaves.items[middle] as Leaf<Node>, leaves.coresAt(middle), key)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first leaf with a node that has this many cores; the number of leaves if there is none. */
  #firstLeafWith(millicores: number): number {
    let [low, high] = [0, this.#leaves.count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#leaves.coresAt(middle) < millicores) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Whether all nodes of a leaf come before a position. */
function endsBefore(leaf: Leaf<FreeNode>, mostCores: number, key: FreeKey): boolean {
  if (mostCores !== key.millicores) return mostCores < key.millicores;
  const last = leaf.count - 1;
  const memoryBytes = leaf.memoryAt(last);
  if (memoryBytes !== key.memoryBytes) return memoryBytes < key.memoryBytes;
  return (leaf.items[last] as FreeNode).id < key.id;
}

/** The index in a leaf at which a position belongs: after all nodes that come before it. */
function placeIn(leaf: Leaf<FreeNode>, key: FreeKey): number {
  let [low, high] = [0, leaf.count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (comesBefore(leaf, middle, key)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function comesBefore(leaf: Leaf<FreeNode>, place: number, key: FreeKey): boolean {
  const difference = leaf.coresAt(place) - key.millicores || leaf.memoryAt(place) - key.memoryBytes;
  if (difference !== 0) return difference < 0;
  return (leaf.items[place] as FreeNode).id < key.id;
}
