import {
  type Execution,
  type ExecutionChange,
  ExecutionIds,
  executionIdTimeMs,
  isTerminal,
  NO_OVERCOMMIT,
  notAfter,
  type Observation,
  type Plan,
  type PlanInput,
  type RecheckedJob,
  settleOrphan,
  stopRevived,
  toWorkNode,
  type VersionSpec,
  type WorkMemory,
} from "@rollcall/domain";
import type { Logger } from "@rollcall/process";
import type { DrainRow, ExecutionRow, JobRow, PlannedJob } from "@rollcall/store";
import { recheckedJobOf, violationsText } from "@rollcall/wire";
import { toObservation } from "../executions/convert-execution.ts";
import { fallbackVersionOf, toJobRecord, toVersionSpec } from "../jobs/view-job.ts";
import type { LeaderOptions } from "./leader-options.ts";
import type { LeaderStore } from "./leader-store.ts";

const NODES_A_READ = 500;
const JOBS_A_READ = 200;
const EXECUTIONS_A_READ = 2_000;

/** Fills the memory of work from the store: reads everything once, and then the changes. */
export class LeaderMemory {
  readonly #record: LeaderStore;
  readonly #log: Logger;
  readonly #shell: WorkMemory;
  readonly #random: () => number;
  #greatestId = "";
  #ids = new ExecutionIds("");
  readonly #versions = new Map<string, LiveVersion>();

  constructor({ record, log, random }: Pick<LeaderOptions, "record" | "log" | "random">, shell: WorkMemory) {
    this.#record = record;
    this.#log = log;
    this.#shell = shell;
    this.#random = random;
  }

  /**
   * Read everything. Changes made during the read must be read again afterwards. Returns the executions with orders.
   */
  async load(nowMs: number, signal: AbortSignal): Promise<readonly string[]> {
    const record = this.#record;
    this.#sawId(await record.greatestExecutionId());
    const ordered: string[] = [];
    await this.#pages(signal, "", async (after) => {
      const ids = await record.readComputeNodeIds({ after, limit: NODES_A_READ });
      await this.refreshNodes(ids);
      return ids.length < NODES_A_READ ? null : (ids.at(-1) ?? null);
    });
    await this.#pages(signal, "", async (after) => {
      const jobs = await record.readJobs({ after, limit: JOBS_A_READ });
      for (const job of jobs) await this.#applyJob(job, Math.min(job.submittedAtMs, nowMs));
      return jobs.length < JOBS_A_READ ? null : (jobs.at(-1)?.name ?? null);
    });
    for (const read of [record.readLiveExecutions, record.readNewestEnded]) {
      await this.#pages(signal, "", async (after) => {
        const executions = await read({ after, limit: EXECUTIONS_A_READ });
        for (const stored of executions) {
          this.#load(stored, nowMs);
          if (stored.order !== null) ordered.push(stored.execution.id);
        }
        return executions.length < EXECUTIONS_A_READ ? null : (executions.at(-1)?.execution.id ?? null);
      });
    }
    return ordered;
  }

  /**
   * Read nodes again, with their drains, and remove those that no longer exist. Returns whether any node is gone or
   * rejected.
   */
  async refreshNodes(ids: readonly string[]): Promise<boolean> {
    if (ids.length === 0) return false;
    let isAnyRejected = false;
    const record = this.#record;
    await record.ensureAllocations(ids);
    const drains = new Map((await record.listDrains(ids)).map((drain) => [drain.nodeId, drain]));
    const gone = new Set(ids);
    for await (const nodes of record.readNodes(ids)) {
      for (const node of nodes) {
        gone.delete(node.id);
        if (node.type !== "COMPUTE") continue;
        if (node.membership.state === "REJECTED") isAnyRejected = true;
        this.#shell.applyNode(toWorkNode(node, NO_OVERCOMMIT));
        const drain = drains.get(node.id);
        if (drain === undefined) this.#shell.removeDrain(node.id);
        else this.#shell.applyDrain(toDrain(drain));
      }
    }
    for (const id of gone) {
      this.#shell.removeDrain(id);
      this.#shell.removeNode(id);
    }
    return isAnyRejected || gone.size > 0;
  }

  /** Read jobs again. */
  async refreshJobs(names: readonly string[], nowMs: number): Promise<void> {
    const gone = new Set(names);
    for (const job of await this.#record.getJobs(names)) {
      gone.delete(job.name);
      await this.#applyJob(job, nowMs);
    }
    for (const name of gone) this.#removeJob(name);
  }

  /**
   * Read what nodes report about executions. Returns the changes that follow for executions that are no longer in
   * memory.
   */
  async observe(ids: readonly string[], nowMs: number): Promise<readonly ExecutionChange[]> {
    const changes: ExecutionChange[] = [];
    for (const { execution, isOrphan, observation } of await this.#record.getExecutions(ids)) {
      const seen = toObservation(observation);
      if (seen === null) continue;
      if (isOrphan) changes.push(...this.#endOfOrphan(execution, seen, nowMs));
      else if (execution.holds || !isTerminal(execution.state)) this.#shell.applyObservation(execution.id, seen);
      else changes.push(...afterEnd(execution, seen));
    }
    return changes;
  }

  /** Return the change after the end of an orphan. An orphan belongs to no job, so its end has no other effects. */
  #endOfOrphan(before: Execution, observation: Observation, nowMs: number): readonly ExecutionChange[] {
    if (observation.observed !== "ENDED") return [];
    const type = this.#shell.state.jobs.get(before.job)?.record.spec.type ?? "service";
    const end = settleOrphan(before, observation, type);
    return [{ kind: "ENDED", before, after: { ...before, ...end, desired: "FORGET", endedAtMs: nowMs }, observation }];
  }

  /** Add an execution from the store. Orphans are left out, because they belong to no job. */
  #load({ execution, isOrphan, observation }: ExecutionRow, nowMs: number): void {
    if (!isOrphan) this.applyRecord(notAfter(execution, nowMs), toObservation(observation));
  }

  /** Apply an execution that was written outside a plan. */
  applyRecord(record: Execution, observation: Observation | null): void {
    // Note the id of an adopted execution, which comes from its node, and can be the greatest so far.
    this.#sawId(record.id);
    this.#shell.applyExecution(record, observation);
  }

  plan(nowMs: number, mostPlaced: number): Plan {
    const newId = () => {
      this.#greatestId = this.#ids.next(nowMs, this.#random);
      return this.#greatestId;
    };
    const input: PlanInput = { nowMs, mostPlaced, newId };
    return this.#shell.plan(input);
  }

  /** The numbers of executions and of waiting replicas. */
  size(): { readonly executions: number; readonly waiting: number } {
    const { executions, waitingJobs, jobs } = this.#shell.state;
    let waiting = 0;
    for (const name of waitingJobs) waiting += jobs.get(name)?.waiting.size ?? 0;
    return { executions: executions.size, waiting };
  }

  revert(plan: Plan): void {
    this.#shell.revert(plan);
  }

  /** Take the jobs to revert because their updates halted. A job is returned only once until it is read again. */
  takeReverts(): readonly { readonly name: string; readonly version: number }[] {
    const { toRevert, jobs } = this.#shell.state;
    const due = [...toRevert].map((name) => ({ name, version: jobs.get(name)?.record.version ?? 0 }));
    toRevert.clear();
    return due;
  }

  /** Return a job as it was last read. */
  jobOf(job: string): PlannedJob {
    const known = this.#versions.get(job);
    if (known === undefined) throw new Error(`unknown job ${job}`);
    return { version: known.version, specDigest: known.digest, createdAtMs: known.createdAtMs };
  }

  /** The spec digest of a version of a job. */
  digestOf(job: string, version: number): Uint8Array {
    const known = this.#versions.get(job);
    if (known?.version === version) return known.digest;
    if (known?.fallback?.version === version) return known.fallback.digest;
    throw new Error(`version ${version} of job ${job} is neither its newest version nor its fallback`);
  }

  /** @param submittedAtMs the planning time of the submission, if the job was submitted since it was last read. */
  async #applyJob(job: JobRow, submittedAtMs: number): Promise<void> {
    const read = this.#versions.get(job.name);
    const known = read?.createdAtMs === job.createdAtMs ? read : undefined;
    // The job was deleted and submitted again since it was last read, so its versions start at 1 again.
    if (read !== known) this.#removeJob(job.name);
    const isSame = known?.submitted.recordMs === job.submittedAtMs;
    const submitted = isSame ? known.submitted : { recordMs: job.submittedAtMs, atMs: submittedAtMs };
    // Keep the parsed spec if the version has not changed, as is the case for most changes to a job.
    const kept = known?.version === job.version ? known.kept : this.#read(job);
    const fallback = await this.#readFallback(job, known?.fallback ?? null);
    const { version, createdAtMs, specDigest: digest } = job;
    this.#versions.set(job.name, { version, createdAtMs, digest, kept, submitted, fallback });
    this.#shell.applyJob({ ...toJobRecord(job, kept, fallback?.placed ?? null), submittedAtMs: submitted.atMs });
  }

  #removeJob(name: string): void {
    this.#versions.delete(name);
    this.#shell.removeJob(name);
  }

  async #readFallback(job: JobRow, known: LiveFallback | null): Promise<LiveFallback | null> {
    const version = fallbackVersionOf(job);
    if (version === null || known?.version === version) return version === null ? null : known;
    const found = await this.#record.getJobVersion(job.name, version);
    return found === null ? null : { version, digest: found.specDigest, placed: toVersionSpec(job, found) };
  }

  #read(job: JobRow): RecheckedJob {
    const kept = recheckedJobOf(job);
    const { name, version } = job;
    if (kept.violations.length > 0) {
      this.#log.warn({ job: name, version, why: violationsText(kept.violations) }, "this release refuses a job");
    }
    return kept;
  }

  /** Make sure that new ids are greater than this one. */
  #sawId(id: string): void {
    if (id <= this.#greatestId || executionIdTimeMs(id) === null) return;
    this.#greatestId = id;
    this.#ids = new ExecutionIds(id);
  }

  async #pages(signal: AbortSignal, from: string, read: (after: string) => Promise<string | null>): Promise<void> {
    let after: string | null = from;
    while (after !== null) {
      signal.throwIfAborted();
      after = await read(after);
    }
  }
}

/**
 * Decide what follows after the end of an execution. The execution must stop if its node still has it, or has it
 * again. It can be forgotten once the node has confirmed the end.
 */
function afterEnd(before: Execution, observation: Observation): readonly ExecutionChange[] {
  const revived = stopRevived(before, observation);
  if (revived !== null) return [{ kind: "STOPPING", before, after: revived, observation }];
  const isConfirmed = before.desired === "STOP" && observation.observed === "ENDED";
  return isConfirmed ? [{ kind: "FREED", before, after: { ...before, desired: "FORGET" }, observation }] : [];
}

/** The version to place after the update to the newest version has halted. */
interface LiveFallback {
  readonly version: number;
  readonly digest: Uint8Array;
  /** The version to place; null if the current rules refuse it. */
  readonly placed: VersionSpec | null;
}

interface LiveVersion {
  readonly version: number;
  /** When the job was created, to distinguish two jobs with the same name. */
  readonly createdAtMs: number;
  readonly digest: Uint8Array;
  readonly kept: RecheckedJob;
  readonly fallback: LiveFallback | null;
  /** When the job was last submitted or restarted, by the store's clock (which can step) and by planning time. */
  readonly submitted: { readonly recordMs: number; readonly atMs: number };
}

function toDrain({ nodeId, drainedAtMs, unconfirmed, deadlineAtMs, force, ignoreDaemons }: DrainRow) {
  const over = unconfirmed ? ("UNCONFIRMED" as const) : ("DRAINED" as const);
  const state = drainedAtMs === null ? ("DRAINING" as const) : over;
  return { nodeId, state, deadlineAtMs, force, ignoreDaemons };
}
