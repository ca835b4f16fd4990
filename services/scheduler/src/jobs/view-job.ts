import type { Job, RecheckedJob, VersionSpec } from "@rollcall/domain";
import {
  type Db,
  type ExecutionRow,
  getJobVersion,
  type JobRow,
  type JobVersionRow,
  readExecutions,
} from "@rollcall/store";
import { jobFromText, jobTypeFromProto, recheckedJobOf } from "@rollcall/wire";
import type { ViewedJob } from "./node-view.ts";

const EXECUTIONS_A_READ = 1_000;

/** Convert a stored job to a domain value. */
export function toJobRecord(job: JobRow, { spec, violations }: RecheckedJob, fallback: VersionSpec | null): Job {
  const { name, version, state, message, count, submittedAtMs, run, placed, halted, readyVersion, sameVersions } = job;
  return {
    ...{ name, version, state, message, count, spec, submittedAtMs, run, placed, halted, readyVersion, sameVersions },
    ...{ undone: job.undone, rolledOut: job.rolledOut, waitingNodes: job.waitingNodes },
    ...(fallback === null ? {} : { fallback }),
    ...(violations.length === 0 ? {} : { violations }),
  };
}

/** The version of a job to place after the update to its newest version has halted; null if there is none. */
export function fallbackVersionOf({ state, version, readyVersion }: JobRow): number | null {
  return state === "ACTIVE" && readyVersion !== version ? readyVersion : null;
}

/**
 * Convert a stored version to a domain value. Null for a version that the current rules refuse: its executions are not
 * placed.
 */
export function toVersionSpec(job: JobRow, { version, spec, actor }: JobVersionRow): VersionSpec | null {
  const kept = recheckedJobOf({ spec, type: jobTypeFromProto(jobFromText(spec).type) ?? job.type, actor });
  return kept.violations.length === 0 ? { version, spec: kept.spec } : null;
}

async function readFallback(db: Db, job: JobRow): Promise<VersionSpec | null> {
  const version = fallbackVersionOf(job);
  const found = version === null ? null : await getJobVersion(db, job.name, version);
  return found === null ? null : toVersionSpec(job, found);
}

/** Whether a job wants executions. A count of 0 means none. */
export function hasPlaces({ type, count }: Pick<JobRow, "type" | "count">): boolean {
  return count > 0 || type === "ops" || type === "daemon";
}

/**
 * Read a job with the executions that determine what happens next.
 *
 * @param nodeId read only the executions on this node, which is enough to explain what the job waits for there
 */
export async function viewJob(
  db: Db,
  job: JobRow | null,
  signal: AbortSignal,
  nodeId: string | null = null,
): Promise<ViewedJob> {
  if (job === null) return { job: null, executions: [] };
  const executions: ExecutionRow[] = [];
  const places = new Set<number>();
  let below: string | null = null;
  for (;;) {
    signal.throwIfAborted();
    const filter = { job: job.name, ...(nodeId === null ? {} : { nodeId }) };
    const rows: readonly ExecutionRow[] = await readExecutions(db, { below, limit: EXECUTIONS_A_READ, filter });
    for (const row of rows) {
      const { index, endedAtMs, holds } = row.execution;
      if (!places.has(index) || endedAtMs === null || holds) executions.push(row);
      places.add(index);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < EXECUTIONS_A_READ) break;
    below = last.execution.id;
  }
  return { job: toJobRecord(job, recheckedJobOf(job), await readFallback(db, job)), executions: executions.reverse() };
}
