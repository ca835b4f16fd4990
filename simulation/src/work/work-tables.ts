import type { Execution, PlacedNode } from "@rollcall/domain";
import type { DrainRow, ExecutionRow, JobRow, JobVersionRow, ReportedExecution, SpecRow } from "@rollcall/store";

export interface SimulatedExecutionRow {
  record: Execution;
  isOrphan: boolean;
  readonly specDigest: Buffer;
  order: ExecutionRow["order"];
  generation: bigint;
}

/** The last report of a node about an execution. */
export interface SimulatedObservationRow extends Omit<ReportedExecution, "observed"> {
  readonly nodeId: string;
  readonly epoch: number;
  readonly report: number;
  readonly observed: ReportedExecution["observed"] | "ABSENT";
  readonly missing: number;
  readonly observedAtMs: number;
}

/** The resources of a node that were granted to executions. */
export interface SimulatedAllocationRow {
  generation: bigint;
  millicores: number;
  memoryBytes: number;
  executions: number;
  readonly ports: Set<number>;
}

/** The rows that dumps contain. */
export interface WorkRows {
  readonly jobs: Map<string, JobRow>;
  /** The versions of jobs, keyed by versionKey(). */
  readonly versions: Map<string, JobVersionRow>;
  /** The specs, keyed by digest in hexadecimal. */
  readonly specs: Map<string, SpecRow>;
  readonly executions: Map<string, SimulatedExecutionRow>;
  readonly observations: Map<string, SimulatedObservationRow>;
  readonly allocations: Map<string, SimulatedAllocationRow>;
  readonly drains: Map<string, DrainRow>;
  /** Nodes that an operator has cordoned. */
  readonly cordons: Set<string>;
  generation: bigint;
}

export function versionKey(job: string, version: number): string {
  return `${version} ${job}`;
}

/** The part of the simulated world that the tables use. */
export interface TableWorld {
  /** Return the time of the store's clock. */
  wallMs(): number;
  /** The current row of a node; null if the node runs no executions. */
  nodeOf(id: string): PlacedNode | null;
  /** The epoch of a node's session. */
  epochOf(id: string): number;
}

/** The maximum number of entries that a change log keeps. A reader that is further behind is a bug. */
const MOST_CHANGES = 400_000;

/** The ids of written rows, in order. */
class ChangeLog {
  #entries: { readonly at: number; readonly id: string }[] = [];

  note(at: number, id: string): void {
    this.#entries.push({ at, id });
    if (this.#entries.length > MOST_CHANGES) this.#entries = this.#entries.slice(MOST_CHANGES / 2);
  }

  /** The ids of rows that were written at a position or later. */
  since(position: number): ReadonlySet<string> {
    const found = new Set<string>();
    for (let index = this.#entries.length - 1; index >= 0; index -= 1) {
      const entry = this.#entries[index];
      if (entry === undefined || entry.at < position) break;
      found.add(entry.id);
    }
    return found;
  }
}

/** The tables for executions, with the indexes that reads need. */
export class WorkTables {
  rows: WorkRows = {
    ...{ jobs: new Map(), versions: new Map(), specs: new Map(), executions: new Map(), observations: new Map() },
    ...{ allocations: new Map(), drains: new Map(), cordons: new Set(), generation: 0n },
  };
  /** The id of the store's history. */
  logId = "log-1";
  readonly world: TableWorld;
  readonly observed = new ChangeLog();
  readonly wanted = new ChangeLog();
  /** Executions that this history has placed, has told a node to run, or has received a report about. */
  readonly heard = new Set<string>();
  #position = 1;
  #histories = 1;
  #byNode = new Map<string, Set<string>>();
  #byJob = new Map<string, Set<string>>();
  #byPlace = new Map<string, Set<string>>();

  constructor(world: TableWorld) {
    this.world = world;
  }

  /** The position at which a new reader of changes starts. */
  get position(): number {
    return this.#position;
  }

  /** Start a transaction. Returns the position from which readers find its writes. */
  begin(): number {
    this.#position += 1;
    return this.#position;
  }

  ofNode(nodeId: string): readonly SimulatedExecutionRow[] {
    return this.#rowsOf(this.#byNode.get(nodeId));
  }

  ofJob(job: string): readonly SimulatedExecutionRow[] {
    return this.#rowsOf(this.#byJob.get(job));
  }

  /** Return the executions with one replica index of a job. */
  ofPlace({ job, index }: Pick<Execution, "job" | "index">): readonly SimulatedExecutionRow[] {
    return this.#rowsOf(this.#byPlace.get(replicaKey({ job, index })));
  }

  allocation(nodeId: string): SimulatedAllocationRow {
    const known = this.rows.allocations.get(nodeId);
    if (known !== undefined) return known;
    const made = { generation: 0n, millicores: 0, memoryBytes: 0, executions: 0, ports: new Set<number>() };
    this.rows.allocations.set(nodeId, made);
    return made;
  }

  insert(row: SimulatedExecutionRow): void {
    const { id } = row.record;
    if (this.rows.executions.has(id)) throw new Error(`execution ${id} already exists`);
    this.rows.executions.set(id, row);
    this.heard.add(id);
    this.#index(row);
  }

  /** Adopt an execution into a replica index of its job. */
  adopt(row: SimulatedExecutionRow, record: Execution): void {
    this.#unindex(row);
    row.isOrphan = false;
    row.record = record;
    this.#index(row);
  }

  /** Raise the generation of a node, so that readers find the change. */
  raise(nodeId: string): bigint {
    this.rows.generation += 1n;
    this.allocation(nodeId).generation = this.rows.generation;
    this.wanted.note(this.#position, nodeId);
    return this.rows.generation;
  }

  /** Copy all rows, like a dump. */
  dump(): WorkRows {
    return structuredClone(this.rows);
  }

  /** Restore a dump, which starts a new history. */
  restore(dump: WorkRows): void {
    this.rows = structuredClone(dump);
    for (const [id, row] of this.rows.executions) {
      this.rows.executions.set(id, { ...row, specDigest: Buffer.from(row.specDigest) });
    }
    this.#histories += 1;
    this.logId = `log-${this.#histories}`;
    this.heard.clear();
    this.#byNode = new Map();
    this.#byJob = new Map();
    this.#byPlace = new Map();
    for (const row of this.rows.executions.values()) this.#index(row);
  }

  /**
   * Forget executions that ended before a time, as compactWork() does. Keep the last execution of each replica
   * index of an ACTIVE job.
   */
  compact(endedBeforeMs: number): void {
    for (const row of [...this.rows.executions.values()]) {
      const { id, job, holds, endedAtMs, desired } = row.record;
      if (endedAtMs === null || holds || endedAtMs >= endedBeforeMs || desired === "STOP") continue;
      const isActive = this.rows.jobs.get(job)?.state === "ACTIVE";
      if (isActive && this.ofPlace(row.record).every(({ record: other }) => other.id <= id)) continue;
      this.rows.executions.delete(id);
      this.rows.observations.delete(id);
      this.heard.delete(id);
      this.#unindex(row);
    }
  }

  #index({ record }: SimulatedExecutionRow): void {
    for (const [index, key] of this.#keysOf(record)) {
      const known = index.get(key) ?? new Set();
      index.set(key, known.add(record.id));
    }
  }

  #unindex({ record }: SimulatedExecutionRow): void {
    for (const [index, key] of this.#keysOf(record)) {
      const known = index.get(key);
      known?.delete(record.id);
      if (known?.size === 0) index.delete(key);
    }
  }

  #keysOf(record: Execution): readonly (readonly [Map<string, Set<string>>, string])[] {
    return [
      [this.#byNode, record.nodeId],
      [this.#byJob, record.job],
      [this.#byPlace, replicaKey(record)],
    ];
  }

  #rowsOf(ids: ReadonlySet<string> | undefined): readonly SimulatedExecutionRow[] {
    return [...(ids ?? [])].flatMap((id) => this.rows.executions.get(id) ?? []);
  }
}

function replicaKey({ job, index }: Pick<Execution, "job" | "index">): string {
  return `${job}/${index}`;
}
