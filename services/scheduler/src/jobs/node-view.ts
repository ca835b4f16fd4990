import {
  couldFit,
  countRefusals,
  type ExecutionChange,
  explainJob,
  explainWaits,
  type Grant,
  type Job,
  type JobExplanation,
  type JobPreview,
  type JobSpec,
  matchingNodes,
  NO_OVERCOMMIT,
  placementRequest,
  previewJob,
  type Refusals,
  toWorkNode,
  type Wait,
  type WaitFacts,
  type WaitScope,
  WorkMemory,
} from "@rollcall/domain";
import type { Logger } from "@rollcall/process";
import { READ_WITHIN_MS, readInTime } from "@rollcall/rpc";
import {
  type AllocationRow,
  type CallStore,
  currentRevision,
  type EventFeed,
  type ExecutionRow,
  type Following,
  readAllocations,
  readComputeNodeIds,
  readNodes,
} from "@rollcall/store";
import { toObservation } from "../executions/convert-execution.ts";
import { Dirty, LEADER_INTEREST } from "../leader/dirty.ts";

/** A job with the executions that determine what happens next. */
export interface ViewedJob {
  /** The job; null if it was never submitted. */
  readonly job: Job | null;
  /** Executions that have not ended, and the last one of each replica index. */
  readonly executions: readonly ExecutionRow[];
}

/** A reason why executions of a job wait. */
export interface JobWait extends Wait {
  readonly job: string;
}

/** The inputs for a view of nodes. */
export interface NodeViewOptions {
  readonly store: CallStore;
  readonly feed: Pick<EventFeed, "start" | "follow">;
  readonly log: Logger;
  /** How long a call waits for the log to be read up to the current revision; default 5000. */
  readonly readWithinMs?: number;
}

/** The nodes in memory, and the subscription that follows their changes. */
interface NodeIndex {
  readonly memory: WorkMemory;
  readonly following: Following;
}

/** Whether nodes could run a job, and why not. */
export interface CouldFit {
  readonly fits: boolean;
  /** The number of nodes that accept work and match the job's constraints, regardless of their size. */
  readonly matching: number;
  readonly why: Refusals;
}

const NODES_A_READ = 500;
const ALLOCATIONS_A_READ = 1_000;

/**
 * The nodes that jobs are planned against, in leading and standby schedulers. The first use reads all nodes; later
 * uses read only those that have changed.
 */
export class NodeView {
  readonly #store: CallStore;
  readonly #feed: NodeViewOptions["feed"];
  readonly #log: Logger;
  readonly #readWithinMs: number;
  readonly #dirty = new Dirty();
  #known: NodeIndex | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: NodeViewOptions) {
    this.#store = options.store;
    this.#feed = options.feed;
    this.#log = options.log;
    this.#readWithinMs = options.readWithinMs ?? READ_WITHIN_MS;
  }

  /** Whether a node could run an execution if nothing else ran there, and why not. */
  async couldFit(spec: JobSpec, signal: AbortSignal): Promise<CouldFit> {
    return this.#alone(signal, async ({ state: { pool } }) => {
      const request = placementRequest(spec);
      pool.use(request);
      try {
        const why = countRefusals(pool, request, new Map());
        return { fits: couldFit(pool, request), matching: matchingNodes(pool, request).length, why };
      } finally {
        pool.unuse(request);
      }
    });
  }

  /** Compute what would happen to a job if this spec were submitted. Changes nothing. */
  async preview(spec: JobSpec, viewed: ViewedJob, signal: AbortSignal): Promise<JobPreview> {
    return this.#alone(signal, (memory) => this.#withJobs(memory, [viewed], () => previewJob(memory.state, spec)));
  }

  /** Explain what the replicas of a job wait for, at a time of the store's clock. */
  async explain(viewed: ViewedJob, nowMs: number, signal: AbortSignal): Promise<JobExplanation | null> {
    const name = viewed.job?.name ?? "";
    return this.#alone(signal, (memory) =>
      this.#withJobs(memory, [viewed], () => explainJob(memory.state, name, nowMs)),
    );
  }

  /** Explain which executions wait, move or are lost. The result follows the given order of the jobs. */
  async explainWaits(
    viewed: readonly ViewedJob[],
    factsOf: (job: string) => WaitFacts,
    scope: WaitScope,
    signal: AbortSignal,
  ): Promise<readonly JobWait[]> {
    return this.#alone(signal, (memory) =>
      this.#withJobs(memory, viewed, () =>
        viewed.flatMap(({ job }) => {
          if (job === null) return [];
          const waits = explainWaits(memory.state, job.name, factsOf(job.name), scope);
          return waits.map((wait) => ({ ...wait, job: job.name }));
        }),
      ),
    );
  }

  /** Run one call at a time, because resources taken while planning one job would be missing for another. */
  async #alone<T>(signal: AbortSignal, use: (memory: WorkMemory) => Promise<T>): Promise<T> {
    const turn = this.#turn.then(async () => {
      signal.throwIfAborted();
      return use(await this.#refreshed(signal));
    });
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #refreshed(signal: AbortSignal): Promise<WorkMemory> {
    const { memory, following } = this.#known ?? (await this.#begin(signal));
    // Read the log up to this revision, because it includes everything that the caller has seen.
    const revision = await currentRevision(this.#store.db);
    await readInTime({ revision, reader: following, signal, withinMs: this.#readWithinMs });
    const ids = this.#dirty.takeNodes();
    // Drop the changes to jobs and orders, which a view of nodes does not need.
    this.#dirty.clear();
    try {
      for (let from = 0; from < ids.length; from += NODES_A_READ) {
        await this.#read(memory, ids.slice(from, from + NODES_A_READ));
      }
    } catch (error) {
      this.#dirty.add({ nodeIds: ids, jobs: [] });
      throw error;
    }
    return memory;
  }

  async #begin(signal: AbortSignal): Promise<NodeIndex> {
    await this.#feed.start();
    const after = await currentRevision(this.#store.db);
    const following = this.#feed.follow({
      name: "job_plans",
      interest: LEADER_INTEREST,
      after,
      deliver: (events) => this.#dirty.note(events),
    });
    following.caughtUp.catch(() => {});
    try {
      const memory = new WorkMemory();
      let last = "";
      for (;;) {
        signal.throwIfAborted();
        const ids = await readComputeNodeIds(this.#store.db, { after: last, limit: NODES_A_READ });
        await this.#read(memory, ids);
        if (ids.length < NODES_A_READ) break;
        last = ids.at(-1) ?? last;
      }
      this.#log.debug({ nodes: memory.state.pool.size }, "read nodes for planning");
      this.#known = { memory, following };
      return this.#known;
    } catch (error) {
      following.leave();
      throw error;
    }
  }

  async #read(memory: WorkMemory, ids: readonly string[]): Promise<void> {
    const gone = new Set(ids);
    for await (const nodes of readNodes(this.#store.db, ids)) {
      for (const node of nodes) {
        gone.delete(node.id);
        if (node.type === "COMPUTE") memory.applyNode(toWorkNode(node, NO_OVERCOMMIT));
      }
    }
    for (const id of gone) memory.removeNode(id);
  }

  /** Add jobs and everything that runs on the nodes, call `look`, and remove them again. */
  async #withJobs<T>(memory: WorkMemory, viewed: readonly ViewedJob[], look: () => T): Promise<T> {
    const allocations = await this.#allocations(memory);
    const { pool } = memory.state;
    const jobs = viewed.flatMap(({ job }) => job ?? []);
    const own = viewed.flatMap(({ executions }) => executions).filter(({ isOrphan }) => !isOrphan);
    const undo: (() => void)[] = [];
    // Do not await anything from here on, because other calls must not see the memory while it is changed.
    try {
      for (const job of jobs) memory.applyJob(job);
      for (const { execution, observation } of own) memory.applyExecution(execution, toObservation(observation));
      for (const [nodeId, allocation] of allocations) {
        for (const grant of restOf(allocation, own, nodeId)) {
          pool.take(nodeId, grant);
          undo.push(() => pool.release(nodeId, grant));
        }
      }
      return look();
    } finally {
      for (const step of undo) step();
      memory.revert({ executions: own.map(added), jobs: [], drains: [] });
      for (const { name } of jobs) memory.removeJob(name);
    }
  }

  async #allocations(memory: WorkMemory): Promise<ReadonlyMap<string, AllocationRow>> {
    const ids = [...memory.state.pool.nodes()].map(({ id }) => id);
    const found = new Map<string, AllocationRow>();
    for (let from = 0; from < ids.length; from += ALLOCATIONS_A_READ) {
      const some = await readAllocations(this.#store.db, ids.slice(from, from + ALLOCATIONS_A_READ));
      for (const [nodeId, allocation] of some) found.set(nodeId, allocation);
    }
    return found;
  }
}

/** The change for an added execution, with which revert() removes the execution. */
function added({ execution }: ExecutionRow): ExecutionChange {
  return { kind: "PLACED", before: null, after: execution, observation: null };
}

const EMPTY: Grant = { millicores: 0, memoryBytes: 0, diskBytes: 0, ports: {}, gpuUuids: [] };

/**
 * The resources that executions of other jobs hold on a node: one grant with the total, plus enough empty grants to
 * make the count right.
 */
function restOf(allocation: AllocationRow, own: readonly ExecutionRow[], nodeId: string): readonly Grant[] {
  const here = own.filter(({ execution }) => execution.nodeId === nodeId && execution.holds);
  const grants = here.map(({ execution }) => execution.grant);
  const sum = (amount: "millicores" | "memoryBytes" | "diskBytes") =>
    Math.max(
      0,
      grants.reduce((left, grant) => left - grant[amount], allocation[amount]),
    );
  const ownPorts = new Set(grants.flatMap(({ ports }) => Object.values(ports)));
  const ownGpus = new Set(grants.flatMap(({ gpuUuids }) => gpuUuids));
  const count = allocation.executions - here.length;
  if (count <= 0) return [];
  const ports = allocation.ports.filter((port) => !ownPorts.has(port));
  const rest: Grant = {
    ...{ millicores: sum("millicores"), memoryBytes: sum("memoryBytes"), diskBytes: sum("diskBytes") },
    ports: Object.fromEntries(ports.map((port) => [String(port), port])),
    gpuUuids: allocation.gpuUuids.filter((uuid) => !ownGpus.has(uuid)),
  };
  return [rest, ...Array<Grant>(count - 1).fill(EMPTY)];
}
