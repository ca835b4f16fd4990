import { seededRandom } from "../seeded-random.ts";
import type { EndReason, Execution, Observation, Observed } from "../work/execution.ts";
import { ExecutionIds } from "../work/execution-id.ts";
import { isTerminal } from "../work/execution-state.ts";
import type { Drain, Job, VersionSpec } from "../work/job.ts";
import type { JobSpec } from "../work/job-spec.ts";
import type { Plan, PlanInput } from "../work/plan.ts";
import { WorkMemory } from "../work/planner/work-memory.ts";
import { notAfter } from "../work/planning-time.ts";
import type { WorkNode } from "../work/work-node.ts";
import { workNode } from "./work-fixtures.ts";

/**
 * Simulates a store of work, and a scheduler whose plans are all committed to the store. Nodes behave as the test
 * orders.
 */
export class TestFleet {
  memory = new WorkMemory();
  nowMs = 1_000_000;
  readonly executions = new Map<string, Execution>();
  readonly observations = new Map<string, Observation>();
  readonly jobs = new Map<string, Job>();
  readonly versions = new Map<string, VersionSpec>();
  readonly drains = new Map<string, Drain>();
  readonly nodes = new Map<string, WorkNode>();
  readonly #random = seededRandom(1);
  #ids = new ExecutionIds("");
  #reports = 0;

  constructor(nodes: readonly WorkNode[]) {
    for (const node of nodes) this.put(node.id, node);
  }

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
    // Read a halted job again. In production, the event of the halted job makes the scheduler do so.
    for (const { after } of plan.jobs) if (after.halted !== null) this.#save(after);
    for (const { after } of plan.drains) this.drains.set(after.nodeId, after);
  }

  /** Start again with an empty memory, like a new leader. */
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
      rolledOut: false,
      waitingNodes: before?.waitingNodes ?? 0,
      run: before === undefined ? 1 : before.run + (before.state === "ACTIVE" ? 0 : 1),
    });
  }

  /** Revert a job to the specification of an earlier version. */
  revert(name: string, to: number, undone?: number): void {
    const job = this.jobs.get(name);
    const target = this.versions.get(`${name} ${to}`);
    if (job === undefined || target === undefined) throw new Error(`job ${name} has no version ${to}`);
    const { undone: _, ...rest } = job;
    this.#saveVersion({
      ...{ ...rest, version: job.version + 1, spec: target.spec, halted: null, message: "", sameVersions: [to] },
      rolledOut: false,
      submittedAtMs: this.nowMs,
      ...(undone === undefined ? {} : { undone }),
    });
  }

  change(name: string, part: Partial<Job>): void {
    const job = this.jobs.get(name);
    if (job !== undefined) this.#save({ ...job, rolledOut: false, ...part });
  }

  restart(name: string): void {
    const run = (this.jobs.get(name)?.run ?? 0) + 1;
    this.change(name, { state: "ACTIVE", run, halted: null, submittedAtMs: this.nowMs });
  }

  drain(nodeId: string, part: Partial<Drain> = {}): void {
    const drain: Drain = {
      ...{ nodeId, state: "DRAINING", deadlineAtMs: this.nowMs + 3_600_000, force: false, ignoreDaemons: false },
      ...part,
    };
    this.drains.set(nodeId, drain);
    this.put(nodeId, { ...this.nodes.get(nodeId), holds: ["DRAIN"] });
    this.memory.applyDrain(drain);
  }

  /** List the executions that should run. */
  running(): readonly Execution[] {
    return [...this.executions.values()].filter(({ desired, state }) => desired === "RUN" && !isTerminal(state));
  }

  newest(): Execution {
    const newest = [...this.executions.values()].reduce((one, other) => (one.id > other.id ? one : other));
    return newest;
  }

  /** List the executions that should run on a node. */
  on(nodeId: string): readonly Execution[] {
    return this.running().filter((record) => record.nodeId === nodeId);
  }

  exit(records: readonly Execution[], exitCode: number): void {
    this.end(records, { end: "EXITED", exitCode });
  }

  end(records: readonly Execution[], how: { readonly end: EndReason; readonly exitCode?: number }): void {
    for (const { id } of records) this.observe(id, "ENDED", how);
  }

  /** Report every execution that should run on a node as ready. */
  ready(nodeId: string): void {
    for (const { id } of this.on(nodeId)) this.observe(id, "READY");
  }

  /** End every execution on a node that was ordered to stop. */
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

  /** Return the cores in use on each node, according to the scheduler's memory. */
  taken(): Record<string, number> {
    return Object.fromEntries([...this.memory.state.pool.nodes()].map(({ id, taken }) => [id, taken.millicores]));
  }

  newId(): string {
    return this.#ids.next(this.nowMs, this.#random);
  }

  #saveVersion(job: Job): void {
    this.versions.set(`${job.name} ${job.version}`, { version: job.version, spec: job.spec });
    this.#save(job);
  }

  #save({ fallback: _, ...job }: Job): void {
    const { name, version, readyVersion } = job;
    const found = readyVersion === version ? undefined : this.versions.get(`${name} ${readyVersion}`);
    const saved = found === undefined ? job : { ...job, fallback: found };
    this.jobs.set(name, saved);
    this.memory.applyJob(saved);
  }
}
