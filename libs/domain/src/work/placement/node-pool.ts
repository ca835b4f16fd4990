import type { Grant } from "../execution.ts";
import type { WorkNode } from "../work-node.ts";
import { FreeOrder } from "./free-order.ts";
import { type ClassFacts, classFacts } from "./node-class.ts";
import type { PlacementRequest } from "./placement-request.ts";
import { addGrant, freeOf, type PoolNode, poolNode, subtractGrant } from "./pool-node.ts";

/** Nodes that no constraint can tell apart, ordered by free resources. */
export interface NodeClass {
  readonly key: string;
  readonly facts: ClassFacts;
  readonly order: FreeOrder<PoolNode>;
  /**
   * How many times a node of the class gained resources, or was added or updated. While this number is unchanged, a
   * request that found no node in the class will not find one.
   */
  gains: number;
  /** The nodes of the last gains, as a ring buffer: gain n is at index n modulo MOST_GAINED. */
  readonly gained: string[];
  /** The pool's count of changes when the class last changed; 0 if it never did. */
  changedAt: number;
  /** The neighbours in the list of classes, which is ordered by last change. */
  older: NodeClass | null;
  newer: NodeClass | null;
}

/** Number of a class's gains that are remembered. */
const MOST_GAINED = 256;

/**
 * The nodes of a class that gained resources since the class's `gains` was `seenGains`; null if they are no longer
 * remembered.
 */
export function gainedSince({ gains, gained }: NodeClass, seenGains: number): readonly string[] | null {
  if (seenGains < 0 || gains - seenGains > MOST_GAINED) return null;
  return Array.from({ length: gains - seenGains }, (_, at) => gained[(seenGains + 1 + at) % MOST_GAINED] as string);
}

/** Maximum number of unused label keys to keep. */
const MOST_UNUSED_KEYS = 16;

/**
 * All compute nodes with their granted resources, grouped by class. Designed for many placements per second: changing
 * a node touches a few lines of its class's order, and searches scan only classes that changed.
 */
export class NodePool {
  readonly #nodes = new Map<string, PoolNode>();
  readonly #classes = new Map<string, NodeClass>();
  readonly #classOf = new Map<string, NodeClass>();
  /** How many requests use each label key. Only labels with these keys distinguish nodes. */
  readonly #keyUses = new Map<string, number>();
  #labelKeys: readonly string[] = [];
  #newest: NodeClass | null = null;
  #changes = 0;
  #gains = 0;

  get size(): number {
    return this.#nodes.size;
  }

  /** The number of changes so far. A search remembers this number to know which changes of the classes it has seen. */
  get changes(): number {
    return this.#changes;
  }

  /** The class that changed last. Its `older` leads to the other classes. */
  get newestClass(): NodeClass | null {
    return this.#newest;
  }

  /**
   * How many times any node gained resources, or was added or updated. While this number is unchanged, a request that
   * found no node will not find one.
   */
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

  /** Add or update a node. Its grants stay. */
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

  /** Add a grant to a node. */
  take(nodeId: string, grant: Grant): void {
    this.#change(nodeId, (node) => addGrant(node.taken, grant), false);
  }

  /** Remove a grant from a node. */
  release(nodeId: string, grant: Grant): void {
    this.#change(nodeId, (node) => subtractGrant(node.taken, grant), true);
  }

  /** Distinguish nodes by the labels that a request uses, until unuse() is called. */
  use({ selector }: PlacementRequest): void {
    const before = this.#keyUses.size;
    for (const { key } of selector) this.#keyUses.set(key, (this.#keyUses.get(key) ?? 0) + 1);
    if (this.#keyUses.size > before) this.#classify();
  }

  /** Undo use(). */
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
