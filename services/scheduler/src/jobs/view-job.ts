import type { JobRecord, KeptJob, VersionSpec } from "@rollcall/domain";
import {
  type Db,
  getJobVersion,
  type JobVersionRecord,
  readExecutions,
  type StoredExecution,
  type StoredJob,
} from "@rollcall/store";
import { jobFromText, jobTypeFromProto, keptJobOf } from "@rollcall/wire";
import type { ViewedJob } from "./node-view.ts";

const EXECUTIONS_A_READ = 1_000;

/** A job as the rules have it. */
export function toJobRecord(job: StoredJob, { spec, violations }: KeptJob, fallback: VersionSpec | null): JobRecord {
  const { name, version, state, message, count, submittedAtMs, run, placed, halted, readyVersion, sameVersions } = job;
  return {
    ...{ name, version, state, message, count, spec, submittedAtMs, run, placed, halted, readyVersion, sameVersions },
    undone: job.undone,
    ...(fallback === null ? {} : { fallback }),
    ...(violations.length === 0 ? {} : { violations }),
  };
}

/** The version of a job that is placed once the update to its newest version has halted. */
export function fallbackVersionOf({ state, version, readyVersion }: StoredJob): number | null {
  return state === "ACTIVE" && readyVersion !== version ? readyVersion : null;
}

/** A version that was read, as the rules take it; null for one that today's rules refuse: nothing of it is placed. */
export function toVersionSpec(job: StoredJob, { version, spec, actor }: JobVersionRecord): VersionSpec | null {
  const kept = keptJobOf({ spec, type: jobTypeFromProto(jobFromText(spec).type) ?? job.type, actor });
  return kept.violations.length === 0 ? { version, spec: kept.spec } : null;
}

async function readFallback(db: Db, job: StoredJob): Promise<VersionSpec | null> {
  const version = fallbackVersionOf(job);
  const found = version === null ? null : await getJobVersion(db, job.name, version);
  return found === null ? null : toVersionSpec(job, found);
}

/** Whether a job wants executions at all: one of a count of 0 does not. */
export function hasPlaces({ type, count }: Pick<StoredJob, "type" | "count">): boolean {
  return count > 0 || type === "ops" || type === "daemon";
}

/** Read a job with those of its executions that what comes next follows from. */
export async function viewJob(db: Db, job: StoredJob | null, signal: AbortSignal): Promise<ViewedJob> {
  if (job === null) return { job: null, executions: [] };
  const executions: StoredExecution[] = [];
  const places = new Set<number>();
  let below: string | null = null;
  for (;;) {
    signal.throwIfAborted();
    const filter = { job: job.name };
    const rows: readonly StoredExecution[] = await readExecutions(db, { below, limit: EXECUTIONS_A_READ, filter });
    for (const row of rows) {
      const { index, endedAtMs, holds } = row.execution;
      if (!places.has(index) || endedAtMs === null || holds) executions.push(row);
      places.add(index);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < EXECUTIONS_A_READ) break;
    below = last.execution.id;
  }
  return { job: toJobRecord(job, keptJobOf(job), await readFallback(db, job)), executions: executions.reverse() };
}
