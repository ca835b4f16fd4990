import type { Grant } from "../execution.ts";
import type { WorkNode } from "../work-node.ts";
import { FreeOrder } from "./free-order.ts";
import { type ClassFacts, classFacts } from "./node-class.ts";
import type { PlacementRequest } from "./placement-request.ts";
import { addGrant, freeOf, type PoolNode, poolNode, subtractGrant } from "./pool-node.ts";

/** Nodes that are equal to all constraints, ordered by what is free. */
export interface NodeClass {
  readonly key: string;
  readonly facts: ClassFacts;
  readonly order: FreeOrder<PoolNode>;
  /** Rises whenever something that did not fit may fit now. */
  gains: number;
  /** The nodes of the last gains: that of each is at its number modulo MOST_GAINED. */
  readonly gained: string[];
  /** When anything of it changed last, by the pool's count of changes; 0 before. */
  changedAt: number;
  /** Neighbours in the list of classes by their last change. */
  older: NodeClass | null;
  newer: NodeClass | null;
}

/** Gains of a class of which the nodes are remembered. */
const MOST_GAINED = 256;

/** The nodes of a class that have gained something since a count of its gains; null when they are not remembered. */
export function gainedSince({ gains, gained }: NodeClass, seenGains: number): readonly string[] | null {
  if (seenGains < 0 || gains - seenGains > MOST_GAINED) return null;
  return Array.from({ length: gains - seenGains }, (_, at) => gained[(seenGains + 1 + at) % MOST_GAINED] as string);
}

/** Label keys that no job asks for any more are given up when there are so many of them. */
const MOST_UNUSED_KEYS = 16;

/**
 * All compute nodes with what is taken of them, in classes. It is written for many placements a second: a change of one
 * node looks at a few lines of its class's order, and searches learn of changed classes alone.
 */
export class NodePool {
  readonly #nodes = new Map<string, PoolNode>();
  readonly #classes = new Map<string, NodeClass>();
  readonly #classOf = new Map<string, NodeClass>();
  /** How many requests ask for each label key. Nodes are told apart by these keys alone. */
  readonly #keyUses = new Map<string, number>();
  #labelKeys: readonly string[] = [];
  #newest: NodeClass | null = null;
  #changes = 0;
  #gains = 0;

  get size(): number {
    return this.#nodes.size;
  }

  /** Counts changes: a search has seen all classes up to one. */
  get changes(): number {
    return this.#changes;
  }

  /** The class that changed last; `older` leads to the others. */
  get newestClass(): NodeClass | null {
    return this.#newest;
  }

  /** Rises whenever something that did not fit may fit now. */
  get gains(): number {
    return this.#gains;
  }

  get classCount(): number {
    return this.#classes.size;
  }

  classes(): Iterable<NodeClass> {
    return this.#classes.values();
  }

  nodes(): Iterable<PoolNode> {
    return this.#nodes.values();
  }

  get(nodeId: string): PoolNode | undefined {
    return this.#nodes.get(nodeId);
  }

  classOf(nodeId: string): NodeClass | undefined {
    return this.#classOf.get(nodeId);
  }

  /** Take in what a node is now. What is taken of it stays. */
  put(node: WorkNode): void {
    const known = this.#nodes.get(node.id);
    if (known === undefined) {
      const added = poolNode(node);
      this.#nodes.set(node.id, added);
      this.#insert(added);
      return;
    }
    this.#remove(known);
    known.node = node;
    known.free = freeOf(node, known.taken);
    this.#insert(known);
  }

  delete(nodeId: string): void {
    const known = this.#nodes.get(nodeId);
    if (known === undefined) return;
    this.#remove(known);
    this.#nodes.delete(nodeId);
  }

  /** Take a grant off a node. */
  take(nodeId: string, grant: Grant): void {
    this.#change(nodeId, (node) => addGrant(node.taken, grant), false);
  }

  /** Return a grant to its node. */
  release(nodeId: string, grant: Grant): void {
    this.#change(nodeId, (node) => subtractGrant(node.taken, grant), true);
  }

  /** Tell nodes apart by the labels that a request asks for, as long as it does. */
  use({ selector }: PlacementRequest): void {
    const before = this.#keyUses.size;
    for (const { key } of selector) this.#keyUses.set(key, (this.#keyUses.get(key) ?? 0) + 1);
    if (this.#keyUses.size > before) this.#classify();
  }

  /** The opposite of use(). */
  unuse({ selector }: PlacementRequest): void {
    for (const { key } of selector) this.#keyUses.set(key, Math.max(0, (this.#keyUses.get(key) ?? 0) - 1));
    const unused = [...this.#keyUses].filter(([, uses]) => uses === 0);
    if (unused.length <= MOST_UNUSED_KEYS) return;
    for (const [key] of unused) this.#keyUses.delete(key);
    this.#classify();
  }

  #classify(): void {
    this.#labelKeys = [...this.#keyUses.keys()].sort();
    for (const node of this.#nodes.values()) {
      this.#remove(node);
      this.#insert(node);
    }
  }

  #change(nodeId: string, change: (node: PoolNode) => void, isGain: boolean): void {
    const node = this.#nodes.get(nodeId);
    const of = this.#classOf.get(nodeId);
    if (node === undefined || of === undefined) return;
    change(node);
    of.order.change(node, freeOf(node.node, node.taken));
    if (isGain) this.#gain(of, nodeId);
    this.#touch(of);
  }

  #insert(node: PoolNode): void {
    const facts = classFacts(node.node, this.#labelKeys);
    const key = JSON.stringify(Object.values(facts));
    let of = this.#classes.get(key);
    if (of === undefined) {
      of = { key, facts, order: new FreeOrder(), gains: 0, gained: [], changedAt: 0, older: null, newer: null };
      this.#classes.set(key, of);
    }
    of.order.insert(node);
    this.#gain(of, node.id);
    this.#classOf.set(node.id, of);
    this.#touch(of);
  }

  #remove(node: PoolNode): void {
    const of = this.#classOf.get(node.id);
    if (of === undefined) return;
    of.order.remove(node);
    this.#classOf.delete(node.id);
    this.#touch(of);
    if (of.order.size > 0) return;
    this.#classes.delete(of.key);
    this.#unlink(of);
  }

  #gain(of: NodeClass, nodeId: string): void {
    of.gains += 1;
    of.gained[of.gains % MOST_GAINED] = nodeId;
    this.#gains += 1;
  }

  #touch(of: NodeClass): void {
    this.#changes += 1;
    of.changedAt = this.#changes;
    if (of === this.#newest) return;
    this.#unlink(of);
    of.older = this.#newest;
    if (this.#newest !== null) this.#newest.newer = of;
    this.#newest = of;
  }

  #unlink(of: NodeClass): void {
    if (of.newer !== null) of.newer.older = of.older;
    else if (this.#newest === of) this.#newest = of.older;
    if (of.older !== null) of.older.newer = of.newer;
    of.newer = null;
    of.older = null;
  }
}
