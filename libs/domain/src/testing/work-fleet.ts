import { seededRandom } from "../seeded-random.ts";
import type { EndReason, ExecutionRecord, Observation, Observed } from "../work/execution.ts";
import { ExecutionIds } from "../work/execution-id.ts";
import { isTerminal } from "../work/execution-state.ts";
import type { DrainRecord, JobRecord, VersionSpec } from "../work/job-record.ts";
import type { JobSpec } from "../work/job-spec.ts";
import type { Plan, PlanInput } from "../work/plan.ts";
import { WorkMemory } from "../work/planner/work-memory.ts";
import { notAfter } from "../work/planning-time.ts";
import type { WorkNode } from "../work/work-node.ts";
import { workNode } from "./work-fixtures.ts";

/** A record of work beside a memory that plans: every plan is committed to it. Its nodes do what a test says. */
export class TestFleet {
  memory = new WorkMemory();
  nowMs = 1_000_000;
  readonly executions = new Map<string, ExecutionRecord>();
  readonly observations = new Map<string, Observation>();
  readonly jobs = new Map<string, JobRecord>();
  readonly versions = new Map<string, VersionSpec>();
  readonly drains = new Map<string, DrainRecord>();
  readonly nodes = new Map<string, WorkNode>();
  readonly #random = seededRandom(1);
  #ids = new ExecutionIds("");
  #reports = 0;

  constructor(nodes: readonly WorkNode[]) {
    for (const node of nodes) this.put(node.id, node);
  }

  /** Plan, and commit. */
  plan(mostPlaced?: number): Plan {
    const plan = this.memory.plan({ ...this.input(), ...(mostPlaced === undefined ? {} : { mostPlaced }) });
    this.commit(plan);
    return plan;
  }

  input(): PlanInput {
    return { nowMs: this.nowMs, newId: () => this.newId() };
  }

  commit(plan: Plan): void {
    for (const { after } of plan.executions) this.executions.set(after.id, after);
    for (const { after } of plan.jobs) this.jobs.set(after.name, after);
    // The log says that a job has changed, and it is read again.
    for (const { after } of plan.jobs) if (after.halted !== null) this.#save(after);
    for (const { after } of plan.drains) this.drains.set(after.nodeId, after);
  }

  /** Begin with a new memory, as another leader does. */
  reload(): void {
    this.memory = new WorkMemory();
    this.#ids = new ExecutionIds([...this.executions.keys()].sort().at(-1) ?? "");
    for (const node of this.nodes.values()) this.memory.applyNode(node);
    for (const job of this.jobs.values()) this.memory.applyJob(job);
    for (const drain of this.drains.values()) this.memory.applyDrain(drain);
    for (const record of this.executions.values()) {
      this.memory.applyExecution(notAfter(record, this.nowMs), this.observations.get(record.id) ?? null);
    }
  }

  pass(ms: number): void {
    this.nowMs += ms;
  }

  put(id: string, part: Partial<WorkNode>): void {
    const node = workNode(id, part);
    this.nodes.set(id, node);
    this.memory.applyNode(node);
  }

  remove(id: string): void {
    this.nodes.delete(id);
    this.memory.removeNode(id);
  }

  submit(spec: JobSpec): void {
    const before = this.jobs.get(spec.name);
    this.#saveVersion({
      ...{
        name: spec.name,
        version: (before?.version ?? 0) + 1,
        state: "ACTIVE",
        message: "",
        count: spec.count,
        spec,
      },
      ...{ submittedAtMs: this.nowMs, placed: false, halted: null, readyVersion: before?.readyVersion ?? null },
      run: before === undefined ? 1 : before.run + (before.state === "ACTIVE" ? 0 : 1),
    });
  }

  /** Give a job the specification of an earlier version. */
  revert(name: string, to: number, undone?: number): void {
    const job = this.jobs.get(name);
    const target = this.versions.get(`${name} ${to}`);
    if (job === undefined || target === undefined) throw new Error(`job ${name} has no version ${to}`);
    const { undone: _, ...rest } = job;
    this.#saveVersion({
      ...{ ...rest, version: job.version + 1, spec: target.spec, halted: null, message: "", sameVersions: [to] },
      submittedAtMs: this.nowMs,
      ...(undone === undefined ? {} : { undone }),
    });
  }

  change(name: string, part: Partial<JobRecord>): void {
    const job = this.jobs.get(name);
    if (job !== undefined) this.#save({ ...job, ...part });
  }

  restart(name: string): void {
    const run = (this.jobs.get(name)?.run ?? 0) + 1;
    this.change(name, { state: "ACTIVE", run, halted: null, submittedAtMs: this.nowMs });
  }

  drain(nodeId: string, part: Partial<DrainRecord> = {}): void {
    const drain: DrainRecord = {
      ...{ nodeId, state: "DRAINING", deadlineAtMs: this.nowMs + 3_600_000, force: false, ignoreDaemons: false },
      ...part,
    };
    this.drains.set(nodeId, drain);
    this.put(nodeId, { ...this.nodes.get(nodeId), holds: ["DRAIN"] });
    this.memory.applyDrain(drain);
  }

  /** Executions that should run. */
  running(): readonly ExecutionRecord[] {
    return [...this.executions.values()].filter(({ desired, state }) => desired === "RUN" && !isTerminal(state));
  }

  newest(): ExecutionRecord {
    const newest = [...this.executions.values()].reduce((one, other) => (one.id > other.id ? one : other));
    return newest;
  }

  /** Executions on a node that should run. */
  on(nodeId: string): readonly ExecutionRecord[] {
    return this.running().filter((record) => record.nodeId === nodeId);
  }

  exit(records: readonly ExecutionRecord[], exitCode: number): void {
    this.end(records, { end: "EXITED", exitCode });
  }

  end(records: readonly ExecutionRecord[], how: { readonly end: EndReason; readonly exitCode?: number }): void {
    for (const { id } of records) this.observe(id, "ENDED", how);
  }

  /** All on a node that should run is ready. */
  ready(nodeId: string): void {
    for (const { id } of this.on(nodeId)) this.observe(id, "READY");
  }

  /** A node ends what it is told to stop. */
  stopAll(nodeId: string): void {
    for (const { id, nodeId: on, desired, holds } of this.executions.values()) {
      if (on === nodeId && desired === "STOP" && holds) this.observe(id, "ENDED", { end: "STOPPED" });
    }
  }

  observe(id: string, observed: Observed, how: { readonly end?: EndReason; readonly exitCode?: number } = {}): void {
    this.#reports += 1;
    const before = this.observations.get(id);
    const observation: Observation = {
      ...{ observed, epoch: 1, report: this.#reports, startedAtMs: before?.startedAtMs ?? this.nowMs },
      ...{ endedAtMs: observed === "ENDED" ? this.nowMs : null, end: how.end ?? null },
      ...{ exitCode: how.exitCode ?? null, signal: null, message: "" },
    };
    this.observations.set(id, observation);
    this.memory.applyObservation(id, observation);
  }

  /** Cores taken of each node, as the memory has them. */
  taken(): Record<string, number> {
    return Object.fromEntries([...this.memory.state.pool.nodes()].map(({ id, taken }) => [id, taken.millicores]));
  }

  newId(): string {
    return this.#ids.next(this.nowMs, this.#random);
  }

  #saveVersion(job: JobRecord): void {
    this.versions.set(`${job.name} ${job.version}`, { version: job.version, spec: job.spec });
    this.#save(job);
  }

  #save({ fallback: _, ...job }: JobRecord): void {
    const { name, version, readyVersion } = job;
    const found = readyVersion === version ? undefined : this.versions.get(`${name} ${readyVersion}`);
    const saved = found === undefined ? job : { ...job, fallback: found };
    this.jobs.set(name, saved);
    this.memory.applyJob(saved);
  }
}
