import {
  chooseGrant,
  couldFit,
  countRefusals,
  type ExecutionRecord,
  type Grant,
  type JobSpec,
  matchingNodes,
  NodePool,
  PlacementSearch,
  placementRequest,
} from "@rollcall/domain";
import type { Logger } from "@rollcall/process";
import {
  type CallStore,
  currentRevision,
  type EventFeed,
  readAllocations,
  readComputeNodeIds,
  readNodes,
} from "@rollcall/store";
import { Dirty, LEADER_INTEREST } from "../leader/dirty.ts";
import { toWorkNode } from "../leader/node-facts.ts";

/** One reason for which nodes will not do. */
export interface NodeRefusal {
  readonly reason: string;
  readonly nodes: number;
}

/** Where one execution would go. */
export interface PlannedPlace {
  readonly index: number;
  readonly nodeId: string;
}

/** What a job would find. */
export interface JobOutlook {
  /** Nodes that were considered. */
  readonly nodes: number;
  readonly placed: readonly PlannedPlace[];
  /** Executions that would wait. */
  readonly waiting: number;
  /** The most frequent first. */
  readonly refusals: readonly NodeRefusal[];
}

/** Where a job stands that is to be planned. */
export interface PlannedJob {
  readonly spec: JobSpec;
  /** Its executions that are not over: their places are taken. */
  readonly present: readonly ExecutionRecord[];
}

const NODES_A_READ = 500;
const ALLOCATIONS_A_READ = 1_000;

/**
 * The nodes that jobs are planned against, in a scheduler that leads and in one that stands by. They are read when they
 * are first asked for; from then on those are read again that have changed.
 */
export class NodeView {
  readonly #store: CallStore;
  readonly #feed: EventFeed;
  readonly #log: Logger;
  readonly #dirty = new Dirty();
  #pool: NodePool | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: { readonly store: CallStore; readonly feed: EventFeed; readonly log: Logger }) {
    this.#store = options.store;
    this.#feed = options.feed;
    this.#log = options.log;
  }

  /** Whether there is a node that could run an execution if nothing else ran there; else why not. */
  async couldFit(spec: JobSpec, signal: AbortSignal): Promise<{ readonly fits: boolean; readonly why: JobOutlook }> {
    return this.#alone(signal, async (pool) => {
      const request = placementRequest(spec);
      pool.use(request);
      try {
        const { nodes, counts } = countRefusals(pool, request, new Map());
        return { fits: couldFit(pool, request), why: { nodes, placed: [], waiting: 0, refusals: counts } };
      } finally {
        pool.unuse(request);
      }
    });
  }

  /** What would happen to a job. Nothing is changed. */
  async outlook(job: PlannedJob, signal: AbortSignal): Promise<JobOutlook> {
    return this.#alone(signal, async (pool) => {
      const taken = await this.#takeAllocated(pool);
      try {
        return planJob(pool, job);
      } finally {
        for (const [nodeId, grants] of taken) for (const grant of grants) pool.release(nodeId, grant);
      }
    });
  }

  /** One at a time: what is taken while one job is planned would be missing for another. */
  async #alone<T>(signal: AbortSignal, use: (pool: NodePool) => Promise<T>): Promise<T> {
    const turn = this.#turn.then(async () => {
      signal.throwIfAborted();
      return use(await this.#refreshed(signal));
    });
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #refreshed(signal: AbortSignal): Promise<NodePool> {
    const pool = this.#pool ?? (await this.#begin(signal));
    await this.#feed.caughtUpTo(await currentRevision(this.#store.db), signal);
    const dirty = this.#dirty.take();
    if (dirty === null) return pool;
    const ids = [...dirty.nodes];
    try {
      for (let from = 0; from < ids.length; from += NODES_A_READ) {
        await this.#read(pool, ids.slice(from, from + NODES_A_READ));
      }
    } catch (error) {
      this.#dirty.add({ nodeIds: ids, jobs: [] });
      throw error;
    }
    return pool;
  }

  async #begin(signal: AbortSignal): Promise<NodePool> {
    await this.#feed.start();
    const after = await currentRevision(this.#store.db);
    const following = this.#feed.follow({
      interest: LEADER_INTEREST,
      after,
      deliver: (events) => this.#dirty.note(events),
    });
    following.caughtUp.catch(() => {});
    try {
      const pool = new NodePool();
      let last = "";
      for (;;) {
        signal.throwIfAborted();
        const ids = await readComputeNodeIds(this.#store.db, { after: last, limit: NODES_A_READ });
        await this.#read(pool, ids);
        if (ids.length < NODES_A_READ) break;
        last = ids.at(-1) ?? last;
      }
      this.#log.debug({ nodes: pool.size }, "nodes read to plan against");
      this.#pool = pool;
      return pool;
    } catch (error) {
      following.leave();
      throw error;
    }
  }

  async #read(pool: NodePool, ids: readonly string[]): Promise<void> {
    const gone = new Set(ids);
    for await (const nodes of readNodes(this.#store.db, ids)) {
      for (const node of nodes) {
        gone.delete(node.id);
        if (node.type === "COMPUTE") pool.put(toWorkNode(node));
      }
    }
    for (const id of gone) pool.delete(id);
  }

  /** Take off the nodes what executions have been given. The answer is what to return. */
  async #takeAllocated(pool: NodePool): Promise<ReadonlyMap<string, readonly Grant[]>> {
    const ids = [...pool.nodes()].map(({ id }) => id);
    const taken = new Map<string, readonly Grant[]>();
    for (let from = 0; from < ids.length; from += ALLOCATIONS_A_READ) {
      const allocations = await readAllocations(this.#store.db, ids.slice(from, from + ALLOCATIONS_A_READ));
      for (const [nodeId, { millicores, memoryBytes, diskBytes, gpuUuids, ports, executions }] of allocations) {
        const whole: Grant = {
          ...{ millicores, memoryBytes, diskBytes, gpuUuids },
          ports: Object.fromEntries(ports.map((port) => [String(port), port])),
        };
        // Each grant counts as one execution.
        const grants = [whole, ...Array<Grant>(Math.max(0, executions - 1)).fill(EMPTY)].slice(0, executions);
        for (const grant of grants) pool.take(nodeId, grant);
        taken.set(nodeId, grants);
      }
    }
    return taken;
  }
}

const EMPTY: Grant = { millicores: 0, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] };

/** Synchronous, so that the pool is as it was when it ends. */
function planJob(pool: NodePool, { spec, present }: PlannedJob): JobOutlook {
  const request = placementRequest(spec);
  const counts = new Map<string, number>();
  for (const { nodeId } of present) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  const undo: (() => void)[] = [];
  pool.use(request);
  try {
    const search = new PlacementSearch(pool, request, counts);
    const taken = new Set(present.map(({ index }) => index));
    const nodesWanted = spec.type === "ops" || spec.type === "daemon" ? matchingNodes(pool, request) : null;
    const free = nodesWanted?.filter((id) => !counts.has(id)) ?? null;
    const missing = free?.length ?? Math.max(0, spec.count - taken.size);
    const placed: PlannedPlace[] = [];
    let index = 0;
    for (let number = 0; number < missing; number += 1) {
      while (taken.has(index)) index += 1;
      const node = free === null ? search.best() : search.onNode(free[number] ?? "");
      const grant = node === null ? null : chooseGrant(node, request);
      if (node === null || grant === null) {
        if (free === null) break;
        continue;
      }
      const { id } = node;
      pool.take(id, grant);
      undo.push(() => pool.release(id, grant));
      counts.set(id, (counts.get(id) ?? 0) + 1);
      taken.add(index);
      placed.push({ index, nodeId: id });
    }
    const { nodes, counts: refusals } = countRefusals(pool, request, counts);
    return { nodes, placed, waiting: missing - placed.length, refusals };
  } finally {
    for (const step of undo.reverse()) step();
    pool.unuse(request);
  }
}
