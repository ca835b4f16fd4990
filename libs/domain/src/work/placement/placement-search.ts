import { Heap } from "../heap.ts";
import { fits } from "./amount-rows.ts";
import { hasPortsAndGpus } from "./choose-grant.ts";
import { type FreeKey, isBefore, keyOf } from "./free-order.ts";
import { enforces, mismatches } from "./node-class.ts";
import type { NodeClass, NodePool } from "./node-pool.ts";
import type { PlacementRequest } from "./placement-request.ts";
import type { PoolNode } from "./pool-node.ts";

/** What a search knows of one class that matches. */
interface Entry {
  readonly of: NodeClass;
  /** Whether its machines enforce what is asked for: others are used where these do not fit. */
  readonly isEnforced: boolean;
  /** The best node of the class when it was looked at; null for none. */
  node: PoolNode | null;
  /** Of a job that is spread: executions of it that the node has at most. */
  level: number;
  /** All before it, in the direction of the search, will not do as long as the class gains nothing. */
  cursor: FreeKey | null;
  seenChange: number;
  seenGains: number;
  /** Entries of the heap with another stamp are of the past. */
  stamp: number;
}

/** A candidate as it was when it was found. */
interface Candidate {
  readonly entry: Entry;
  readonly stamp: number;
  readonly isConnected: boolean;
  readonly isEnforced: boolean;
  readonly level: number;
  readonly key: FreeKey;
}

/**
 * Finds the best node for a request again and again while nodes are taken and returned. It remembers the best of each
 * class that matches and looks only at classes that changed, so that the number of nodes does not matter.
 */
export class PlacementSearch {
  readonly #pool: NodePool;
  readonly #request: PlacementRequest;
  readonly #counts: ReadonlyMap<string, number>;
  /** Null for a class that does not match. */
  readonly #entries = new Map<NodeClass, Entry | null>();
  readonly #heap: Heap<Candidate>;
  #seenChange = 0;

  /** @param counts executions of the job that hold resources, by node; read at every search. */
  constructor(pool: NodePool, request: PlacementRequest, counts: ReadonlyMap<string, number>) {
    this.#pool = pool;
    this.#request = request;
    this.#counts = counts;
    this.#heap = new Heap(request.spec.strategy === "spread" ? isBetterSpread : isBetterPacked);
  }

  /** The node to place the next execution on, which is not taken yet; null when none will do. */
  best(): PoolNode | null {
    const { nodeId } = this.#request.spec.constraints;
    if (nodeId !== null) return this.onNode(nodeId);
    this.#learn();
    for (;;) {
      const first = this.#heap.peek();
      if (first === undefined) return null;
      const { entry, stamp } = first;
      const isPast = entry.stamp !== stamp;
      if (!isPast && entry.of.changedAt <= entry.seenChange) return entry.node;
      this.#heap.pop();
      if (!isPast) this.#look(entry);
    }
  }

  /** As best(), but none of some nodes. */
  bestBut(avoided: ReadonlySet<string>): PoolNode | null {
    const best = this.best();
    if (best === null || !avoided.has(best.id)) return best;
    if (this.#request.spec.constraints.nodeId !== null) return null;
    let found: Candidate | null = null;
    for (const entry of this.#entries.values()) {
      if (entry === null) continue;
      const { order, facts } = entry.of;
      const node = order.firstFit(this.#request.amounts, null, (it) => !avoided.has(it.id) && this.#accepts(it));
      if (node === null) continue;
      const level = this.#counts.get(node.id) ?? 0;
      const other: Candidate = {
        entry: { ...entry, node },
        ...{ stamp: 0, isConnected: facts.isConnected, isEnforced: entry.isEnforced, level, key: keyOf(node) },
      };
      if (found === null || isBetterPacked(other, found)) found = other;
    }
    return found?.entry.node ?? null;
  }

  /** The node of an id, where it will do. */
  onNode(nodeId: string): PoolNode | null {
    const node = this.#pool.get(nodeId);
    const of = this.#pool.classOf(nodeId);
    if (node === undefined || of === undefined || !isMatch(of, this.#request)) return null;
    return fits(node.free, this.#request.amounts) && this.#accepts(node) ? node : null;
  }

  /** Look at the classes that have changed since the last time. */
  #learn(): void {
    if (this.#entries.size > 2 * this.#pool.classCount + 64) this.#forget();
    for (let of = this.#pool.newestClass; of !== null && of.changedAt > this.#seenChange; of = of.older) {
      const entry = this.#entryOf(of);
      if (entry !== null && of.changedAt > entry.seenChange) this.#look(entry);
    }
    this.#seenChange = this.#pool.changes;
  }

  /** Classes come and go: forget all once most of those that are remembered may be gone. */
  #forget(): void {
    this.#entries.clear();
    this.#heap.clear();
    this.#seenChange = 0;
  }

  #entryOf(of: NodeClass): Entry | null {
    const known = this.#entries.get(of);
    if (known !== undefined) return known;
    const entry = isMatch(of, this.#request) ? newEntry(of, this.#request) : null;
    this.#entries.set(of, entry);
    return entry;
  }

  /** Find the best node of a class again. */
  #look(entry: Entry): void {
    const { of } = entry;
    if (of.gains !== entry.seenGains) {
      entry.node = null;
      entry.level = 0;
      entry.cursor = null;
    }
    const hadNone = entry.node === null && entry.seenGains === of.gains;
    entry.seenChange = of.changedAt;
    entry.seenGains = of.gains;
    entry.stamp += 1;
    // Nothing was returned to a class where nothing fitted.
    if (hadNone) return;
    const { strategy } = this.#request.spec;
    if (!this.#request.isPicky) {
      entry.node = of.order.firstFit(this.#request.amounts, null, acceptAll);
    } else if (strategy === "spread") {
      this.#lookSpread(entry);
    } else {
      this.#lookPicky(entry);
    }
    if (entry.node === null) return;
    if (this.#heap.size > 2 * this.#entries.size + 64) this.#clean();
    this.#push(entry, entry.node);
  }

  /** The fullest node, which often is the one that was used last. */
  #lookPicky(entry: Entry): void {
    const { of, node } = entry;
    const { amounts } = this.#request;
    const isSame = node !== null && this.#pool.classOf(node.id) === of;
    if (isSame && fits(node.free, amounts) && this.#accepts(node)) return;
    const accept = (it: PoolNode) => this.#accepts(it);
    // Others may have taken from nodes beyond the cursor, which are before it since.
    const found = of.order.firstFit(amounts, entry.cursor, accept) ?? of.order.firstFit(amounts, null, accept);
    entry.node = found;
    if (found !== null) entry.cursor = keyOf(found);
  }

  /** The emptiest of the nodes that have the fewest executions of the job. */
  #lookSpread(entry: Entry): void {
    const { of } = entry;
    const { amounts } = this.#request;
    for (let level: number | null = entry.level; level !== null; level = this.#levelAfter(level)) {
      if (level !== entry.level) entry.cursor = null;
      entry.level = level;
      const most = level;
      const accept = (it: PoolNode) => (this.#counts.get(it.id) ?? 0) <= most && this.#accepts(it);
      const found = of.order.lastFit(amounts, entry.cursor, accept);
      entry.node = found;
      if (found !== null) {
        // The next search begins with this very node: it may not be taken.
        entry.cursor = { ...keyOf(found), id: `${found.id}\u0000` };
        return;
      }
    }
  }

  #levelAfter(level: number): number | null {
    let next: number | null = null;
    for (const count of this.#counts.values()) if (count > level && (next === null || count < next)) next = count;
    return next;
  }

  #accepts(node: PoolNode): boolean {
    const { maxPerNode } = this.#request.spec;
    if (maxPerNode > 0 && (this.#counts.get(node.id) ?? 0) >= maxPerNode) return false;
    return this.#request.plainGrant !== null || hasPortsAndGpus(node, this.#request);
  }

  #clean(): void {
    this.#heap.clear();
    for (const entry of this.#entries.values()) {
      if (entry === null || entry.node === null || entry.of.changedAt > entry.seenChange) continue;
      this.#push(entry, entry.node);
    }
  }

  #push(entry: Entry, node: PoolNode): void {
    const { of, stamp, isEnforced, level } = entry;
    this.#heap.push({ entry, stamp, isConnected: of.facts.isConnected, isEnforced, level, key: keyOf(node) });
  }
}

/** Whether nodes of a class may be given work of a request, if they have room for it. */
export function isMatch({ facts }: NodeClass, request: PlacementRequest): boolean {
  return facts.obstacles.length === 0 && mismatches(facts, request).length === 0;
}

const acceptAll = () => true;

function newEntry(of: NodeClass, request: PlacementRequest): Entry {
  const isEnforced = enforces(of.facts, request);
  return { of, isEnforced, node: null, level: 0, cursor: null, seenChange: 0, seenGains: -1, stamp: 0 };
}

function isBetterPacked(one: Candidate, other: Candidate): boolean {
  if (one.isConnected !== other.isConnected) return one.isConnected;
  if (one.isEnforced !== other.isEnforced) return one.isEnforced;
  return isBefore(one.key, other.key);
}

function isBetterSpread(one: Candidate, other: Candidate): boolean {
  if (one.isConnected !== other.isConnected) return one.isConnected;
  if (one.level !== other.level) return one.level < other.level;
  if (one.isEnforced !== other.isEnforced) return one.isEnforced;
  return isBefore(other.key, one.key);
}
