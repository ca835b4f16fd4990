/** What a request needs of a node, and a node has left. */
export interface Amounts {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
}

/**
 * A node in a tree that is ordered by free cores, then free memory, then id, and balanced by chance (a treap), the
 * chance being a hash of the id: equal nodes make equal trees. Each node knows the most that is free of the other
 * resources at or below it, so that a search leaves out what cannot fit.
 */
export interface FreeNode {
  readonly id: string;
  readonly priority: number;
  free: Amounts;
  left: FreeNode | null;
  right: FreeNode | null;
  /** Nodes at or below this one. */
  size: number;
  mostMemory: number;
  mostDisk: number;
  mostGpus: number;
}

/** A place in the order. */
export interface FreeKey {
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly id: string;
}

/** A node that is in no tree. */
export function freeNode(id: string, free: Amounts): FreeNode {
  const most = { mostMemory: free.memoryBytes, mostDisk: free.diskBytes, mostGpus: free.gpus };
  return { id, priority: hashOf(id), free, left: null, right: null, size: 1, ...most };
}

/** A node's place in the order. */
export function keyOf({ id, free }: FreeNode): FreeKey {
  return { millicores: free.millicores, memoryBytes: free.memoryBytes, id };
}

/** Add a node, and return the new root. */
export function insertNode(root: FreeNode | null, node: FreeNode): FreeNode {
  if (root === null) return update(node);
  if (node.priority > root.priority || (node.priority === root.priority && node.id > root.id)) {
    const [less, more] = split(root, node);
    node.left = less;
    node.right = more;
    return update(node);
  }
  if (isBefore(node, root)) root.left = insertNode(root.left, node);
  else root.right = insertNode(root.right, node);
  return update(root);
}

/** Remove a node, whose free resources are as they were when it was added, and return the new root. */
export function removeNode(root: FreeNode | null, node: FreeNode): FreeNode | null {
  if (root === null) return null;
  if (root === node) {
    const rest = merge(root.left, root.right);
    node.left = null;
    node.right = null;
    return rest;
  }
  if (isBefore(node, root)) root.left = removeNode(root.left, node);
  else root.right = removeNode(root.right, node);
  return update(root);
}

/**
 * Change what is free on a node of a tree, and return the new root. Most often the node keeps its place in the order:
 * a node that is being filled has no other between what it had and what it has.
 */
export function changeFree(root: FreeNode | null, node: FreeNode, free: Amounts): FreeNode | null {
  const before = node.free;
  const { above, below } = neighbours(root, node);
  node.free = free;
  if ((above === null || isBefore(above, node)) && (below === null || isBefore(node, below))) {
    refresh(root, node);
    return root;
  }
  node.free = before;
  const rest = removeNode(root, node);
  node.free = free;
  return insertNode(rest, node);
}

/** The nodes before and after one in the order. */
function neighbours(root: FreeNode | null, node: FreeNode) {
  let above: FreeNode | null = null;
  let below: FreeNode | null = null;
  for (let at = root; at !== null && at !== node; ) {
    if (isBefore(node, at)) {
      below = at;
      at = at.left;
    } else {
      above = at;
      at = at.right;
    }
  }
  for (let at = node.left; at !== null; at = at.right) above = at;
  for (let at = node.right; at !== null; at = at.left) below = at;
  return { above, below };
}

/** Bring what is known of all places above a node up to date. */
function refresh(root: FreeNode | null, node: FreeNode): void {
  if (root === null) return;
  if (root !== node) refresh(isBefore(node, root) ? root.left : root.right, node);
  update(root);
}

/** The first node in the order, after a place in it, that has what is needed and is accepted. */
export function firstFit(
  root: FreeNode | null,
  need: Amounts,
  after: FreeKey | null,
  accept: (node: FreeNode) => boolean,
): FreeNode | null {
  let node = root;
  while (node !== null && mayFit(node, need)) {
    if (node.free.millicores < need.millicores || (after !== null && !isKeyBefore(after, node))) {
      node = node.right;
      continue;
    }
    const before = firstFit(node.left, need, after, accept);
    if (before !== null) return before;
    if (fits(node.free, need) && accept(node)) return node;
    node = node.right;
  }
  return null;
}

/** The last node in the order, before a place in it, that has what is needed and is accepted. */
export function lastFit(
  root: FreeNode | null,
  need: Amounts,
  before: FreeKey | null,
  accept: (node: FreeNode) => boolean,
): FreeNode | null {
  let node = root;
  while (node !== null && mayFit(node, need)) {
    const hasCores = node.free.millicores >= need.millicores;
    if (before !== null && !isBeforeKey(node, before)) {
      // Nodes to the left have fewer cores still.
      if (!hasCores) return null;
      node = node.left;
      continue;
    }
    const later = lastFit(node.right, need, before, accept);
    if (later !== null) return later;
    if (!hasCores) return null;
    if (fits(node.free, need) && accept(node)) return node;
    node = node.left;
  }
  return null;
}

/** How many nodes lack each of the resources that are needed. A node is counted for each that it lacks. */
export function countShort(root: FreeNode | null, need: Amounts): { readonly [Key in keyof Amounts]: number } {
  const below = (node: FreeNode | null, amount: keyof Amounts, most: keyof FreeNode): number => {
    if (node === null) return 0;
    if (Number(node[most]) < need[amount]) return node.size;
    const own = node.free[amount] < need[amount] ? 1 : 0;
    return own + below(node.left, amount, most) + below(node.right, amount, most);
  };
  return {
    millicores: countFewerCores(root, need.millicores),
    memoryBytes: below(root, "memoryBytes", "mostMemory"),
    diskBytes: below(root, "diskBytes", "mostDisk"),
    gpus: below(root, "gpus", "mostGpus"),
  };
}

function countFewerCores(root: FreeNode | null, millicores: number): number {
  let count = 0;
  for (let node = root; node !== null; ) {
    if (node.free.millicores < millicores) {
      count += 1 + (node.left?.size ?? 0);
      node = node.right;
    } else {
      node = node.left;
    }
  }
  return count;
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

function mayFit(node: FreeNode, need: Amounts): boolean {
  return node.mostMemory >= need.memoryBytes && node.mostDisk >= need.diskBytes && node.mostGpus >= need.gpus;
}

function isBefore(node: FreeNode, other: FreeNode): boolean {
  const difference = node.free.millicores - other.free.millicores || node.free.memoryBytes - other.free.memoryBytes;
  return difference === 0 ? node.id < other.id : difference < 0;
}

function isKeyBefore(key: FreeKey, node: FreeNode): boolean {
  const difference = key.millicores - node.free.millicores || key.memoryBytes - node.free.memoryBytes;
  return difference === 0 ? key.id < node.id : difference < 0;
}

function isBeforeKey(node: FreeNode, key: FreeKey): boolean {
  const difference = node.free.millicores - key.millicores || node.free.memoryBytes - key.memoryBytes;
  return difference === 0 ? node.id < key.id : difference < 0;
}

function split(root: FreeNode | null, at: FreeNode): [FreeNode | null, FreeNode | null] {
  if (root === null) return [null, null];
  if (isBefore(root, at)) {
    const [less, more] = split(root.right, at);
    root.right = less;
    return [update(root), more];
  }
  const [less, more] = split(root.left, at);
  root.left = more;
  return [less, update(root)];
}

function merge(less: FreeNode | null, more: FreeNode | null): FreeNode | null {
  if (less === null) return more;
  if (more === null) return less;
  if (less.priority > more.priority || (less.priority === more.priority && less.id > more.id)) {
    less.right = merge(less.right, more);
    return update(less);
  }
  more.left = merge(less, more.left);
  return update(more);
}

function update(node: FreeNode): FreeNode {
  const { free, left, right } = node;
  let size = 1;
  let memory = free.memoryBytes;
  let disk = free.diskBytes;
  let gpus = free.gpus;
  if (left !== null) {
    size += left.size;
    if (left.mostMemory > memory) memory = left.mostMemory;
    if (left.mostDisk > disk) disk = left.mostDisk;
    if (left.mostGpus > gpus) gpus = left.mostGpus;
  }
  if (right !== null) {
    size += right.size;
    if (right.mostMemory > memory) memory = right.mostMemory;
    if (right.mostDisk > disk) disk = right.mostDisk;
    if (right.mostGpus > gpus) gpus = right.mostGpus;
  }
  node.size = size;
  node.mostMemory = memory;
  node.mostDisk = disk;
  node.mostGpus = gpus;
  return node;
}

/** FNV-1a with a final mix, so that ids that differ in one digit are far apart. */
function hashOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let place = 0; place < id.length; place += 1) hash = Math.imul(hash ^ id.charCodeAt(place), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  return (hash ^ (hash >>> 15)) >>> 0;
}
