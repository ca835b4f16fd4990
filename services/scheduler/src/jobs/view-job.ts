import type { JobRecord, KeptJob } from "@rollcall/domain";
import { type Db, readExecutions, type StoredExecution, type StoredJob } from "@rollcall/store";
import { keptJobOf } from "@rollcall/wire";
import type { ViewedJob } from "./node-view.ts";

const EXECUTIONS_A_READ = 1_000;

/** A job as the rules have it. */
export function toJobRecord(job: StoredJob, { spec, violations }: KeptJob): JobRecord {
  const { name, version, state, message, count, submittedAtMs, run, placed, halted } = job;
  return {
    ...{ name, version, state, message, count, spec, submittedAtMs, run, placed, halted },
    ...(violations.length === 0 ? {} : { violations }),
  };
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
  return { job: toJobRecord(job, keptJobOf(job)), executions: executions.reverse() };
}
