import type { Execution, Observation } from "../execution.ts";
import type { JobSpec } from "../job-spec.ts";

/** The job that adopts an execution. */
export interface AdoptingJob {
  readonly count: number;
  readonly run: number;
  readonly spec: Pick<JobSpec, "type" | "checked">;
}

/** An execution that the job already has. */
export interface JobsExecution {
  readonly record: Pick<Execution, "index" | "state" | "desired" | "replacedBy" | "run">;
  readonly observed: Observation["observed"] | null;
}

/**
 * Choose the replica index for an execution that a job adopts. In an ops job or daemon, it is the lowest free index. In
 * a batch job or service, an index beyond the job's count would end the execution immediately. If all indexes below
 * the count are used, it is the lowest whose execution is not usable, and otherwise 0: another execution with the same
 * index is stopped as a duplicate.
 */
export function adoptedIndex({ count, run, spec }: AdoptingJob, executions: readonly JobsExecution[]): number {
  const isPerNode = spec.type === "ops" || spec.type === "daemon";
  const using = executions.filter(({ record }) => {
    if (record.state === "COMPLETED") return spec.type === "batch" && record.run >= run;
    const isWanted = (record.state === "LIVE" || record.state === "LOST") && record.desired === "RUN";
    return isWanted && (isPerNode || record.replacedBy === null);
  });
  const used = new Set(using.map(({ record }) => record.index));
  const free = firstWithout(used, isPerNode ? Number.POSITIVE_INFINITY : count);
  if (free !== null) return free;
  const usable = new Set(using.filter((one) => isUsable(one, spec)).map(({ record }) => record.index));
  return firstWithout(usable, count) ?? 0;
}

function isUsable({ record, observed }: JobsExecution, { checked }: AdoptingJob["spec"]): boolean {
  if (record.state === "COMPLETED") return true;
  return record.state === "LIVE" && (observed === "READY" || (!checked && observed === "RUNNING"));
}

/** The lowest index below a limit that is not in the set; null for none. */
function firstWithout(taken: ReadonlySet<number>, limit: number): number | null {
  let index = 0;
  while (index < limit && taken.has(index)) index += 1;
  return index < limit ? index : null;
}
