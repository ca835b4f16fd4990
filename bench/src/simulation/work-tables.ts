import type { ExecutionRecord, PlacedNode } from "@rollcall/domain";
import type {
  JobVersionRecord,
  ReportedExecution,
  SpecRecord,
  StoredDrain,
  StoredExecution,
  StoredJob,
} from "@rollcall/store";

/** An execution as its row has it. */
export interface ExecutionRow {
  record: ExecutionRecord;
  isOrphan: boolean;
  readonly specDigest: Buffer;
  order: StoredExecution["order"];
  generation: bigint;
}

/** What a node said last of an execution. */
export interface ObservationRow extends Omit<ReportedExecution, "observed"> {
  readonly nodeId: string;
  readonly epoch: number;
  readonly report: number;
  readonly observed: ReportedExecution["observed"] | "ABSENT";
  readonly missing: number;
  readonly observedAtMs: number;
}

/** What executions have been given of a node. */
export interface AllocationRow {
  generation: bigint;
  millicores: number;
  memoryBytes: number;
  executions: number;
  readonly ports: Set<number>;
}

/** What is dumped and restored. */
export interface WorkRows {
  readonly jobs: Map<string, StoredJob>;
  /** By versionKey(). */
  readonly versions: Map<string, JobVersionRecord>;
  /** By their digests, in hexadecimal digits. */
  readonly specs: Map<string, SpecRecord>;
  readonly executions: Map<string, ExecutionRow>;
  readonly observations: Map<string, ObservationRow>;
  readonly allocations: Map<string, AllocationRow>;
  readonly drains: Map<string, StoredDrain>;
  /** Nodes that an operator has cordoned. */
  readonly cordons: Set<string>;
  generation: bigint;
}

/** Names a version of a job. */
export function versionKey(job: string, version: number): string {
  return `${version} ${job}`;
}

/** What the tables take from the world. */
export interface TableWorld {
  /** By the record's clock. */
  wallMs(): number;
  /** As the record has the node now; null for one that runs no work at all. */
  nodeOf(id: string): PlacedNode | null;
  /** The epoch of a node's session. */
  epochOf(id: string): number;
}

/** A change log keeps so many entries; a reader that is further behind is a bug. */
const MOST_CHANGES = 400_000;

/** Which rows were written, in order. */
class ChangeLog {
  #entries: { readonly at: number; readonly id: string }[] = [];

  note(at: number, id: string): void {
    this.#entries.push({ at, id });
    if (this.#entries.length > MOST_CHANGES) this.#entries = this.#entries.slice(MOST_CHANGES / 2);
  }

  /** Those that were written at a position or later. */
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

/** The tables of work, with the indexes that reads need. */
export class WorkTables {
  rows: WorkRows = {
    ...{ jobs: new Map(), versions: new Map(), specs: new Map(), executions: new Map(), observations: new Map() },
    ...{ allocations: new Map(), drains: new Map(), cordons: new Set(), generation: 0n },
  };
  /** Names the history of the record. */
  logId = "log-1";
  readonly world: TableWorld;
  readonly observed = new ChangeLog();
  readonly wanted = new ChangeLog();
  /** What this history has placed, has told a node to run, or has been told of by a node. */
  readonly heard = new Set<string>();
  #position = 1;
  #histories = 1;
  #byNode = new Map<string, Set<string>>();
  #byJob = new Map<string, Set<string>>();
  #byPlace = new Map<string, Set<string>>();

  constructor(world: TableWorld) {
    this.world = world;
  }

  /** Where a reader of changes begins. */
  get position(): number {
    return this.#position;
  }

  /** A transaction begins: what it writes is found by readers from this position on. */
  begin(): number {
    this.#position += 1;
    return this.#position;
  }

  ofNode(nodeId: string): readonly ExecutionRow[] {
    return this.#rowsOf(this.#byNode.get(nodeId));
  }

  ofJob(job: string): readonly ExecutionRow[] {
    return this.#rowsOf(this.#byJob.get(job));
  }

  /** Of one place of a job. */
  ofPlace({ job, index }: Pick<ExecutionRecord, "job" | "index">): readonly ExecutionRow[] {
    return this.#rowsOf(this.#byPlace.get(placeKey({ job, index })));
  }

  allocation(nodeId: string): AllocationRow {
    const known = this.rows.allocations.get(nodeId);
    if (known !== undefined) return known;
    const made = { generation: 0n, millicores: 0, memoryBytes: 0, executions: 0, ports: new Set<number>() };
    this.rows.allocations.set(nodeId, made);
    return made;
  }

  insert(row: ExecutionRow): void {
    const { id } = row.record;
    if (this.rows.executions.has(id)) throw new Error(`execution ${id} is there already`);
    this.rows.executions.set(id, row);
    this.heard.add(id);
    this.#index(row);
  }

  /** An execution is adopted into a place of its job. */
  adopt(row: ExecutionRow, record: ExecutionRecord): void {
    this.#unindex(row);
    row.isOrphan = false;
    row.record = record;
    this.#index(row);
  }

  /** The next generation of a node, which its readers then find. */
  raise(nodeId: string): bigint {
    this.rows.generation += 1n;
    this.allocation(nodeId).generation = this.rows.generation;
    this.wanted.note(this.#position, nodeId);
    return this.rows.generation;
  }

  /** A copy of all rows, as a dump is one. */
  dump(): WorkRows {
    return structuredClone(this.rows);
  }

  /** Go back to a dump. What follows is another history. */
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

  /** Forget what ended before a time, but for the last of each place of an ACTIVE job, as compactWork() does. */
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

  #index({ record }: ExecutionRow): void {
    for (const [index, key] of this.#keysOf(record)) {
      const known = index.get(key) ?? new Set();
      index.set(key, known.add(record.id));
    }
  }

  #unindex({ record }: ExecutionRow): void {
    for (const [index, key] of this.#keysOf(record)) {
      const known = index.get(key);
      known?.delete(record.id);
      if (known?.size === 0) index.delete(key);
    }
  }

  #keysOf(record: ExecutionRecord): readonly (readonly [Map<string, Set<string>>, string])[] {
    return [
      [this.#byNode, record.nodeId],
      [this.#byJob, record.job],
      [this.#byPlace, placeKey(record)],
    ];
  }

  #rowsOf(ids: ReadonlySet<string> | undefined): readonly ExecutionRow[] {
    return [...(ids ?? [])].flatMap((id) => this.rows.executions.get(id) ?? []);
  }
}

function placeKey({ job, index }: Pick<ExecutionRecord, "job" | "index">): string {
  return `${job}/${index}`;
}
