import { Heap } from "../heap.ts";
import type { JobSpec } from "../job-spec.ts";
import { fits } from "./amount-rows.ts";
import { hasPortsAndGpus } from "./choose-grant.ts";
import { type FreeKey, isBefore, keyOf } from "./free-order.ts";
import { enforces, mismatches } from "./node-class.ts";
import { gainedSince, type NodeClass, type NodePool } from "./node-pool.ts";
import type { PlacementRequest } from "./placement-request.ts";
import type { PoolNode } from "./pool-node.ts";

/** A search's state for one matching class. */
interface Entry {
  readonly of: NodeClass;
  /** Whether machines of the class enforce the requested limits. These classes are preferred. */
  readonly isEnforced: boolean;
  /** The best node of the class at the last scan; null if none fits. */
  node: PoolNode | null;
  /** How many executions of the job stay on `node`; 0 if the strategy does not use levels. */
  level: number;
  /**
   * How far the class has been searched: no node before the cursor fits until a node of the class gains resources. In a
   * search by levels, this is true only of nodes that have at most `passedLevel` executions of the job and are not in
   * `gained`.
   */
  cursor: FreeKey | null;
  passedLevel: number;
  readonly gained: Set<string>;
  seenChange: number;
  seenGains: number;
  /** Increases with each scan. Candidates in the heap with another stamp are outdated. */
  stamp: number;
}

/** The number of a job's executions on each node. */
interface JobCounts {
  /** Executions that hold resources. */
  readonly counts: ReadonlyMap<string, number>;
  /** Executions that stay. When a job is spread, nodes with fewer of them are preferred. */
  readonly staying: ReadonlyMap<string, number>;
}

/** The best node of a class when it was scanned. */
interface Candidate {
  readonly entry: Entry;
  readonly stamp: number;
  readonly isConnected: boolean;
  readonly isCalm: boolean;
  readonly isEnforced: boolean;
  readonly level: number;
  readonly key: FreeKey;
}

/** The result of a search by levels: the best node of a class, and how far the class has been searched. */
interface Leveled {
  readonly node: PoolNode | null;
  readonly level: number;
  readonly cursor: FreeKey | null;
  readonly passedLevel: number;
}

/**
 * Maximum number of gained nodes per class to examine individually. If there are more, the whole class is searched
 * again.
 */
const MAX_SCANNED = 64;

/**
 * Finds the best node for a request repeatedly while grants are added and removed. It remembers the best node of each
 * matching class and scans only classes that changed, so its cost does not depend on the number of nodes.
 */
export class PlacementSearch {
  readonly #pool: NodePool;
  readonly #request: PlacementRequest;
  readonly #counts: JobCounts;
  /** Whether nodes are ordered by level, that is, by the number of the job's executions that stay on them. */
  readonly #isLeveled: boolean;
  readonly #isBetter: (one: Candidate, other: Candidate) => boolean;
  /** The state of each class; null for a class that does not match. */
  readonly #entries = new Map<NodeClass, Entry | null>();
  readonly #heap: Heap<Candidate>;
  #seenChange = 0;

  /**
   * @param counts the job's executions, read at every search; null for a search that several jobs share because their
   *   executions do not matter.
   */
  constructor(pool: NodePool, request: PlacementRequest, counts: JobCounts | null) {
    const { strategy } = request.spec;
    this.#pool = pool;
    this.#request = request;
    this.#counts = counts ?? NO_COUNTS;
    this.#isLeveled = counts !== null && strategy !== "bin-pack";
    this.#isBetter = BETTER[strategy];
    this.#heap = new Heap(this.#isBetter);
  }

  /** The best node for the next execution; null if no node fits. Does not add the grant. */
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

  /** Like best(), but excludes some nodes. */
  bestBut(avoided: ReadonlySet<string>): PoolNode | null {
    const best = this.best();
    if (best === null || !avoided.has(best.id)) return best;
    if (this.#request.spec.constraints.nodeId !== null) return null;
    let found: Candidate | null = null;
    const accept = (it: PoolNode) => !avoided.has(it.id) && this.#accepts(it);
    for (const entry of this.#entries.values()) {
      if (entry === null) continue;
      const { node, level } = this.#isLeveled
        ? this.#findLeveled(entry, accept)
        : { node: entry.of.order.firstFit(this.#request.amounts, null, accept), level: 0 };
      if (node === null) continue;
      const other = candidateOf({ ...entry, node, level }, node);
      if (found === null || this.#isBetter(other, found)) found = other;
    }
    return found?.entry.node ?? null;
  }

  /** The node with this id; null if it does not fit. */
  onNode(nodeId: string): PoolNode | null {
    const node = this.#pool.get(nodeId);
    const of = this.#pool.classOf(nodeId);
    if (node === undefined || of === undefined || !isMatch(of, this.#request)) return null;
    return fits(node.free, this.#request.amounts) && this.#accepts(node) ? node : null;
  }

  /** Scan the classes that have changed since the last search. */
  #learn(): void {
    if (this.#entries.size > 2 * this.#pool.classCount + 64) this.#forget();
    for (let of = this.#pool.newestClass; of !== null && of.changedAt > this.#seenChange; of = of.older) {
      const entry = this.#entryOf(of);
      if (entry !== null && of.changedAt > entry.seenChange) this.#look(entry);
    }
    this.#seenChange = this.#pool.changes;
  }

  /** Forget all classes. Called when most of the remembered classes may no longer exist. */
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

  /** Scan a class for its best node. */
  #look(entry: Entry): void {
    const { of } = entry;
    const hadNone = entry.node === null && entry.seenGains === of.gains;
    if (of.gains !== entry.seenGains) this.#noteGains(entry);
    entry.seenChange = of.changedAt;
    entry.seenGains = of.gains;
    entry.stamp += 1;
    // Skip the class: none of its nodes fitted, and none has gained resources since.
    if (hadNone) return;
    if (this.#isLeveled) {
      Object.assign(
        entry,
        this.#findLeveled(entry, (it) => this.#accepts(it)),
      );
    } else if (this.#request.isPicky) {
      this.#lookPicky(entry);
    } else {
      entry.node = of.order.firstFit(this.#request.amounts, null, acceptAll);
    }
    if (entry.node === null) return;
    if (this.#heap.size > 2 * this.#entries.size + 64) this.#clean();
    this.#heap.push(candidateOf(entry, entry.node));
  }

  /**
   * Take into account nodes that gained resources: they may fit now, even if the cursor has passed them. With levels,
   * these nodes are examined individually as long as there are few.
   */
  #noteGains(entry: Entry): void {
    const gained = this.#isLeveled ? gainedSince(entry.of, entry.seenGains) : null;
    for (const id of gained ?? []) if (this.#levelOf(id) <= entry.passedLevel) entry.gained.add(id);
    if (gained !== null && entry.gained.size <= MAX_SCANNED) return;
    entry.node = null;
    entry.cursor = null;
    entry.passedLevel = 0;
    entry.gained.clear();
  }

  /** Find the fullest node that fits. Often this is the same node as before. */
  #lookPicky(entry: Entry): void {
    const { of, node } = entry;
    const { amounts } = this.#request;
    const isSame = node !== null && this.#pool.classOf(node.id) === of;
    if (isSame && fits(node.free, amounts) && this.#accepts(node)) return;
    const accept = (it: PoolNode) => this.#accepts(it);
    // Search from the cursor, then from the start: other searches may have used nodes, which moved them before the
    // cursor.
    const found = of.order.firstFit(amounts, entry.cursor, accept) ?? of.order.firstFit(amounts, null, accept);
    entry.node = found;
    if (found !== null) entry.cursor = keyOf(found);
  }

  /**
   * Find the best node among those with the fewest executions of the job: the fullest, or for "spread" the emptiest.
   */
  #findLeveled(entry: Entry, isAccepted: (node: PoolNode) => boolean): Leveled {
    const passed = this.#bestGained(entry, isAccepted);
    let { cursor, passedLevel } = entry;
    if (passed !== null && this.#levelOf(passed.id) < passedLevel) {
      return { node: passed, level: this.#levelOf(passed.id), cursor, passedLevel };
    }
    for (;;) {
      const most = passedLevel;
      let next = Number.POSITIVE_INFINITY;
      const accept = (it: PoolNode) => {
        const level = this.#levelOf(it.id);
        if (level > most && level >= next) return false;
        if (!isAccepted(it)) return false;
        if (level <= most) return true;
        next = level;
        return false;
      };
      // Search from the cursor, then from the start: other searches may have used nodes, which moved them before the
      // cursor.
      const found = this.#fit(entry.of, cursor, accept) ?? (cursor === null ? null : this.#fit(entry.of, null, accept));
      if (found !== null) cursor = keyOf(found);
      const node = passed !== null && (found === null || this.#isFirst(passed, found)) ? passed : found;
      if (node !== null) return { node, level: this.#levelOf(node.id), cursor, passedLevel };
      if (next === Number.POSITIVE_INFINITY) return { node: null, level: 0, cursor, passedLevel };
      [cursor, passedLevel] = [null, next];
    }
  }

  /**
   * The best of the nodes that gained resources after the cursor had passed them. Nodes that do not fit are removed
   * from `gained`.
   */
  #bestGained(entry: Entry, isAccepted: (node: PoolNode) => boolean): PoolNode | null {
    let best: PoolNode | null = null;
    for (const id of entry.gained) {
      const node = this.#pool.get(id);
      const isHere = node !== undefined && this.#pool.classOf(id) === entry.of;
      const mayDo = isHere && this.#levelOf(id) <= entry.passedLevel && fits(node.free, this.#request.amounts);
      if (!mayDo || !this.#accepts(node)) entry.gained.delete(id);
      else if (isAccepted(node) && (best === null || this.#isFirst(node, best))) best = node;
    }
    return best;
  }

  /** Whether one of two nodes of a class is better than the other. */
  #isFirst(one: PoolNode, other: PoolNode): boolean {
    const difference = this.#levelOf(one.id) - this.#levelOf(other.id);
    if (difference !== 0) return difference < 0;
    return isBefore(keyOf(one), keyOf(other)) !== (this.#request.spec.strategy === "spread");
  }

  #fit({ order }: NodeClass, cursor: FreeKey | null, accept: (node: PoolNode) => boolean): PoolNode | null {
    const { amounts, spec } = this.#request;
    if (spec.strategy !== "spread") return order.firstFit(amounts, cursor, accept);
    // Include the node at the cursor, which may not have been used yet.
    return order.lastFit(amounts, cursor === null ? null : { ...cursor, id: `${cursor.id}\u0000` }, accept);
  }

  #levelOf(nodeId: string): number {
    return this.#counts.staying.get(nodeId) ?? 0;
  }

  #accepts(node: PoolNode): boolean {
    const { maxPerNode } = this.#request.spec;
    if (maxPerNode > 0 && (this.#counts.counts.get(node.id) ?? 0) >= maxPerNode) return false;
    return this.#request.plainGrant !== null || hasPortsAndGpus(node, this.#request);
  }

  #clean(): void {
    this.#heap.clear();
    for (const entry of this.#entries.values()) {
      if (entry === null || entry.node === null || entry.of.changedAt > entry.seenChange) continue;
      this.#heap.push(candidateOf(entry, entry.node));
    }
  }
}

/** Whether nodes of a class can run executions of a request if they have room. */
export function isMatch({ facts }: NodeClass, request: PlacementRequest): boolean {
  return facts.obstacles.length === 0 && mismatches(facts, request).length === 0;
}

const acceptAll = () => true;

function newEntry(of: NodeClass, request: PlacementRequest): Entry {
  const isEnforced = enforces(of.facts, request);
  return {
    ...{ of, isEnforced, node: null, level: 0, cursor: null, passedLevel: 0, gained: new Set() },
    ...{ seenChange: 0, seenGains: -1, stamp: 0 },
  };
}

function candidateOf(entry: Entry, node: PoolNode): Candidate {
  const { of, stamp, isEnforced, level } = entry;
  const { isConnected, isCalm } = of.facts;
  return { entry, stamp, isConnected, isCalm, isEnforced, level, key: keyOf(node) };
}

const NO_COUNTS: JobCounts = { counts: new Map(), staying: new Map() };

const BETTER: Readonly<Record<JobSpec["strategy"], (one: Candidate, other: Candidate) => boolean>> = {
  "bin-pack": (one, other) => {
    if (one.isConnected !== other.isConnected) return one.isConnected;
    if (one.isEnforced !== other.isEnforced) return one.isEnforced;
    return isBefore(one.key, other.key);
  },
  spread: (one, other) => {
    if (one.isConnected !== other.isConnected) return one.isConnected;
    if (one.level !== other.level) return one.level < other.level;
    if (one.isEnforced !== other.isEnforced) return one.isEnforced;
    return isBefore(other.key, one.key);
  },
  even: (one, other) => {
    if (one.isConnected !== other.isConnected) return one.isConnected;
    if (one.level !== other.level) return one.level < other.level;
    if (one.isCalm !== other.isCalm) return one.isCalm;
    if (one.isEnforced !== other.isEnforced) return one.isEnforced;
    return isBefore(one.key, other.key);
  },
};
