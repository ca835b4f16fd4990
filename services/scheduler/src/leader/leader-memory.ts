import type { ExecutionRecord, JobRecord, JobSpec, Observation, Plan, PlanInput, WorkMemory } from "@rollcall/domain";
import {
  ensureAllocations,
  getExecutions,
  getJobs,
  listDrains,
  type ReservedStore,
  readComputeNodeIds,
  readJobs,
  readLiveExecutions,
  readNewestEnded,
  readNodes,
  type StoredDrain,
  type StoredExecution,
  type StoredJob,
} from "@rollcall/store";
import { ExecutionIds } from "../execution-ids.ts";
import { checkedJob } from "../jobs/job-text.ts";
import { toWorkNode } from "./node-facts.ts";

const NODES_A_READ = 500;
const JOBS_A_READ = 200;
const EXECUTIONS_A_READ = 2_000;

/** The memory of work as the record fills it: what there is, read once, and then what has changed. */
export class LeaderMemory {
  readonly #store: ReservedStore;
  readonly #shell: WorkMemory;
  readonly #ids = new ExecutionIds();
  readonly #versions = new Map<string, KnownVersion>();

  constructor(store: ReservedStore, shell: WorkMemory) {
    this.#store = store;
    this.#shell = shell;
  }

  /** Read everything. What changes meanwhile has to be read again after it. */
  async load(signal: AbortSignal): Promise<void> {
    const { db } = this.#store;
    await this.#pages(signal, "", async (after) => {
      const ids = await readComputeNodeIds(db, { after, limit: NODES_A_READ });
      await this.refreshNodes(ids);
      return ids.length < NODES_A_READ ? null : (ids.at(-1) ?? null);
    });
    await this.#pages(signal, "", async (after) => {
      const jobs = await readJobs(db, { after, limit: JOBS_A_READ });
      for (const job of jobs) this.#applyJob(job);
      return jobs.length < JOBS_A_READ ? null : (jobs.at(-1)?.name ?? null);
    });
    for (const read of [readLiveExecutions, readNewestEnded]) {
      await this.#pages(signal, "", async (after) => {
        const executions = await read(db, { after, limit: EXECUTIONS_A_READ });
        for (const execution of executions) this.applyExecution(execution);
        return executions.length < EXECUTIONS_A_READ ? null : (executions.at(-1)?.execution.id ?? null);
      });
    }
  }

  /** Read nodes again, with their drains. Those that are gone are removed. */
  async refreshNodes(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const { db } = this.#store;
    await ensureAllocations(this.#store, ids);
    const drains = new Map((await listDrains(db, ids)).map((drain) => [drain.nodeId, drain]));
    const gone = new Set(ids);
    for await (const nodes of readNodes(db, ids)) {
      for (const node of nodes) {
        gone.delete(node.id);
        if (node.type !== "COMPUTE") continue;
        this.#shell.applyNode(toWorkNode(node));
        const drain = drains.get(node.id);
        if (drain === undefined) this.#shell.removeDrain(node.id);
        else this.#shell.applyDrain(toDrain(drain));
      }
    }
    for (const id of gone) {
      this.#shell.removeDrain(id);
      this.#shell.removeNode(id);
    }
  }

  /** Read jobs again. */
  async refreshJobs(names: readonly string[]): Promise<void> {
    const gone = new Set(names);
    for (const job of await getJobs(this.#store.db, names)) {
      gone.delete(job.name);
      this.#applyJob(job);
    }
    for (const name of gone) {
      this.#versions.delete(name);
      this.#shell.removeJob(name);
    }
  }

  /** Read what nodes say of executions. */
  async observe(ids: readonly string[]): Promise<void> {
    for (const { execution, isOrphan, observation } of await getExecutions(this.#store.db, ids)) {
      const seen = toObservation(observation);
      if (!isOrphan && seen !== null) this.#shell.applyObservation(execution.id, seen);
    }
  }

  /** Take an execution in as the record has it. One that no job has is left out. */
  applyExecution({ execution, isOrphan, observation }: StoredExecution): void {
    this.#ids.saw(execution.id);
    if (isOrphan) return;
    this.#shell.applyExecution(execution, toObservation(observation));
  }

  /** Take in what was written of an execution besides a plan. */
  applyRecord(record: ExecutionRecord, observation: Observation | null): void {
    this.#shell.applyExecution(record, observation);
  }

  plan(nowMs: number, mostPlaced: number): Plan {
    const input: PlanInput = { nowMs, mostPlaced, newId: () => this.#ids.make(nowMs) };
    return this.#shell.plan(input);
  }

  revert(plan: Plan): void {
    this.#shell.revert(plan);
  }

  /** The digest of what a version of a job runs. */
  digestOf(job: string, version: number): Uint8Array {
    const known = this.#versions.get(job);
    if (known?.version !== version) throw new Error(`version ${version} of job ${job} is not its newest`);
    return known.digest;
  }

  #applyJob(job: StoredJob): void {
    const known = this.#versions.get(job.name);
    // Most changes of a job make no new version, and what it asks for stays prepared then.
    const spec = known?.version === job.version ? known.spec : checkedJob(job.spec);
    this.#versions.set(job.name, { version: job.version, digest: job.specDigest, spec });
    this.#ids.saw(job.restartBefore);
    this.#shell.applyJob(toJob(job, spec));
  }

  async #pages(signal: AbortSignal, from: string, read: (after: string) => Promise<string | null>): Promise<void> {
    let after: string | null = from;
    while (after !== null) {
      signal.throwIfAborted();
      after = await read(after);
    }
  }
}

interface KnownVersion {
  readonly version: number;
  readonly digest: Uint8Array;
  readonly spec: JobSpec;
}

function toJob(job: StoredJob, spec: JobSpec): JobRecord {
  const { name, version, state, message, count, submittedAtMs, restartBefore, placed, halted } = job;
  return { name, version, state, message, count, spec, submittedAtMs, restartBefore, placed, halted };
}

function toDrain({ nodeId, drainedAtMs, deadlineAtMs, force, ignoreDaemons }: StoredDrain) {
  const state = drainedAtMs === null ? ("DRAINING" as const) : ("DRAINED" as const);
  return { nodeId, state, deadlineAtMs, force, ignoreDaemons };
}

/** Whole reports in a row that have to lack an execution for it to be gone: the first may have been on its way. */
const REPORTS_THAT_LACK = 2;

/** What a node said as the rules have it; null for nothing. One that it has lost is gone. */
export function toObservation(seen: StoredExecution["observation"]): Observation | null {
  if (seen === null) return null;
  const { observed, missing, epoch, report, startedAtMs, endedAtMs, end, exitCode, signal, message } = seen;
  const said = { epoch, report, startedAtMs, endedAtMs, exitCode, signal, message };
  if (missing >= REPORTS_THAT_LACK && observed !== "ENDED") return { ...said, observed: "ENDED", end: "GONE" };
  return observed === "ABSENT" ? null : { ...said, observed, end };
}
