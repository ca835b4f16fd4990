import {
  type ExecutionChange,
  ExecutionIds,
  type ExecutionRecord,
  executionIdTimeMs,
  isTerminal,
  type KeptJob,
  NO_OVERCOMMIT,
  notAfter,
  type Observation,
  type Plan,
  type PlanInput,
  settleOrphan,
  stopRevived,
  toWorkNode,
  type VersionSpec,
  type WorkMemory,
} from "@rollcall/domain";
import type { Logger } from "@rollcall/process";
import type { StoredDrain, StoredExecution, StoredJob } from "@rollcall/store";
import { keptJobOf, violationsText } from "@rollcall/wire";
import { toObservation } from "../executions/convert-execution.ts";
import { fallbackVersionOf, toJobRecord, toVersionSpec } from "../jobs/view-job.ts";
import type { LeaderOptions } from "./leader-options.ts";
import type { LeaderRecord } from "./leader-record.ts";

const NODES_A_READ = 500;
const JOBS_A_READ = 200;
const EXECUTIONS_A_READ = 2_000;

/** The memory of work as the record fills it: what there is, read once, and then what has changed. */
export class LeaderMemory {
  readonly #record: LeaderRecord;
  readonly #log: Logger;
  readonly #shell: WorkMemory;
  readonly #random: () => number;
  #greatestId = "";
  #ids = new ExecutionIds("");
  readonly #versions = new Map<string, KnownVersion>();

  constructor({ record, log, random }: Pick<LeaderOptions, "record" | "log" | "random">, shell: WorkMemory) {
    this.#record = record;
    this.#log = log;
    this.#shell = shell;
    this.#random = random;
  }

  /** Read everything. What changes meanwhile has to be read again after it. Answers which executions have orders. */
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

  /** Read nodes again, with their drains. Those that are gone are removed. Whether any is gone, or rejected. */
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

  /** Read what nodes say of executions. Answers what that changes of executions that are not in memory any more. */
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

  /** No job has an orphan, so that nothing but its own end follows from its end. */
  #endOfOrphan(before: ExecutionRecord, observation: Observation, nowMs: number): readonly ExecutionChange[] {
    if (observation.observed !== "ENDED") return [];
    const type = this.#shell.state.jobs.get(before.job)?.record.spec.type ?? "service";
    const end = settleOrphan(before, observation, type);
    return [{ kind: "ENDED", before, after: { ...before, ...end, desired: "FORGET", endedAtMs: nowMs }, observation }];
  }

  /** Take an execution in as the record has it. One that no job has is left out. */
  #load({ execution, isOrphan, observation }: StoredExecution, nowMs: number): void {
    if (!isOrphan) this.applyRecord(notAfter(execution, nowMs), toObservation(observation));
  }

  /** Take in what was written of an execution besides a plan. */
  applyRecord(record: ExecutionRecord, observation: Observation | null): void {
    // An adopted one has the id that its node named.
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

  /** How much there is. */
  size(): { readonly executions: number; readonly waiting: number } {
    const { executions, waitingJobs, jobs } = this.#shell.state;
    let waiting = 0;
    for (const name of waitingJobs) waiting += jobs.get(name)?.waiting.size ?? 0;
    return { executions: executions.size, waiting };
  }

  revert(plan: Plan): void {
    this.#shell.revert(plan);
  }

  /** Take the jobs that are to be reverted, since their updates halted; each once until it is read again. */
  takeReverts(): readonly { readonly name: string; readonly version: number }[] {
    const { toRevert, jobs } = this.#shell.state;
    const due = [...toRevert].map((name) => ({ name, version: jobs.get(name)?.record.version ?? 0 }));
    toRevert.clear();
    return due;
  }

  /** The digest of what a version of a job runs. */
  digestOf(job: string, version: number): Uint8Array {
    const known = this.#versions.get(job);
    if (known?.version === version) return known.digest;
    if (known?.fallback?.version === version) return known.fallback.digest;
    throw new Error(`version ${version} of job ${job} is neither its newest nor the one that it falls back on`);
  }

  /** @param submittedAtMs when it was submitted by planning time, if it was submitted since it was read last. */
  async #applyJob(job: StoredJob, submittedAtMs: number): Promise<void> {
    const read = this.#versions.get(job.name);
    const known = read?.createdAtMs === job.createdAtMs ? read : undefined;
    // Deleted and submitted again since it was read: its versions begin at 1 again.
    if (read !== known) this.#removeJob(job.name);
    const isSame = known?.submitted.recordMs === job.submittedAtMs;
    const submitted = isSame ? known.submitted : { recordMs: job.submittedAtMs, atMs: submittedAtMs };
    // Most changes of a job make no new version, and what it asks for stays prepared then.
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

  async #readFallback(job: StoredJob, known: KnownFallback | null): Promise<KnownFallback | null> {
    const version = fallbackVersionOf(job);
    if (version === null || known?.version === version) return version === null ? null : known;
    const found = await this.#record.getJobVersion(job.name, version);
    return found === null ? null : { version, digest: found.specDigest, placed: toVersionSpec(job, found) };
  }

  #read(job: StoredJob): KeptJob {
    const kept = keptJobOf(job);
    const { name, version } = job;
    if (kept.violations.length > 0) {
      this.#log.warn({ job: name, version, why: violationsText(kept.violations) }, "a job is refused by this release");
    }
    return kept;
  }

  /** Ids that are made from now on are greater. */
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
 * One whose end was recorded is told to stop when its node has it still, or has it again, and may be forgotten once the
 * node has confirmed the end.
 */
function afterEnd(before: ExecutionRecord, observation: Observation): readonly ExecutionChange[] {
  const revived = stopRevived(before, observation);
  if (revived !== null) return [{ kind: "STOPPING", before, after: revived, observation }];
  const isConfirmed = before.desired === "STOP" && observation.observed === "ENDED";
  return isConfirmed ? [{ kind: "FREED", before, after: { ...before, desired: "FORGET" }, observation }] : [];
}

/** The version that is placed once the update to the newest one has halted. */
interface KnownFallback {
  readonly version: number;
  readonly digest: Uint8Array;
  /** Null for one that today's rules refuse. */
  readonly placed: VersionSpec | null;
}

interface KnownVersion {
  readonly version: number;
  /** When the job was created, by which two jobs of the same name differ. */
  readonly createdAtMs: number;
  readonly digest: Uint8Array;
  readonly kept: KeptJob;
  readonly fallback: KnownFallback | null;
  /** When it was submitted last or started again: by the record's clock, which may step, and by planning time. */
  readonly submitted: { readonly recordMs: number; readonly atMs: number };
}

function toDrain({ nodeId, drainedAtMs, unconfirmed, deadlineAtMs, force, ignoreDaemons }: StoredDrain) {
  const over = unconfirmed ? ("UNCONFIRMED" as const) : ("DRAINED" as const);
  const state = drainedAtMs === null ? ("DRAINING" as const) : over;
  return { nodeId, state, deadlineAtMs, force, ignoreDaemons };
}
