import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type ExecutionCounts,
  ExecutionCountsSchema,
  type Job,
  JobSchema,
  JobState,
  type JobUpdate,
  JobUpdateSchema,
  type JobVersion,
  JobVersionSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { JobState as DomainJobState } from "@rollcall/domain";
import type { Db, ExecutionTally, JobRow, JobVersionRow } from "@rollcall/store";
import { tallyExecutions } from "@rollcall/store";
import { jobFromText, recheckedJobOf, violationsText } from "@rollcall/wire";

/** A job with the counts of its executions. */
export interface CountedJob {
  readonly job: JobRow;
  readonly tally: readonly ExecutionTally[];
}

export async function countJobExecutions(db: Db, jobs: readonly JobRow[]): Promise<readonly CountedJob[]> {
  const rows = await tallyExecutions(
    db,
    jobs.map(({ name }) => name),
  );
  const tallies = new Map(jobs.map(({ name }): [string, ExecutionTally[]] => [name, []]));
  for (const row of rows) tallies.get(row.job)?.push(row);
  return jobs.map((job) => ({ job, tally: tallies.get(job.name) ?? [] }));
}

/** The public message of a job. */
export function jobToProto({ job, tally }: CountedJob): Job {
  const update = updateOf(job, tally);
  return create(JobSchema, {
    spec: jobFromText(job.spec),
    version: job.version,
    state: JOB_STATES[job.state],
    message: messageOf(job),
    wanted: wantedOf(job, tally),
    executions: countsOf(job, tally),
    ...(update === null ? {} : { update }),
    createTime: timestampFromMs(job.createdAtMs),
    updateTime: timestampFromMs(job.updatedAtMs),
    actor: job.actor,
    etag: job.etag,
    run: job.run,
    readyVersion: job.readyVersion ?? 0,
    sameVersions: [...job.sameVersions],
    undoneVersion: job.undone ?? 0,
    rolledOut: job.rolledOut,
  });
}

/** Human-readable message about the state of a job; "" for none. */
export function messageOf(job: Pick<JobRow, "spec" | "type" | "actor" | "state" | "message">): string {
  const violations = job.state === "ACTIVE" ? recheckedJobOf(job).violations : [];
  if (violations.length === 0) return job.message;
  const why = violationsText(violations);
  return (
    "this release does not accept the job's specification, and places no further executions until a valid " +
    `version is submitted: ${why}`
  );
}

const JOB_STATES: Readonly<Record<DomainJobState, JobState>> = {
  ACTIVE: JobState.ACTIVE,
  STOPPED: JobState.STOPPED,
  COMPLETED: JobState.COMPLETED,
  FAILED: JobState.FAILED,
};

/** Convert the requested states to those of the store. */
export function jobStatesFromProto(states: readonly JobState[]): readonly DomainJobState[] {
  const names = Object.keys(JOB_STATES) as DomainJobState[];
  return names.filter((name) => states.includes(JOB_STATES[name]));
}

/** The public message of a version. */
export function jobVersionToProto(record: JobVersionRow): JobVersion {
  const { version, spec, createdAtMs, actor, reason, readyAtMs, origin } = record;
  return create(JobVersionSchema, {
    ...{ version, spec: jobFromText(spec), createTime: timestampFromMs(createdAtMs), actor, reason, origin },
    ...(readyAtMs === null ? {} : { readyTime: timestampFromMs(readyAtMs) }),
  });
}

type Kind = Exclude<keyof ExecutionCounts, "$typeName" | "$unknown" | "waiting">;

/**
 * How to count an execution; null to ignore it, because another execution with the same replica index counts
 * instead.
 */
function kindOf({ state, desired, observed, replaced, nodeHealthy }: ExecutionTally): Kind | null {
  switch (state) {
    case "LIVE":
    case "ORPHANED":
      if (desired === "STOP") return "stopping";
      if (!nodeHealthy) return "lost";
      if (observed === "READY") return "ready";
      return observed === "RUNNING" ? "running" : "pending";
    case "LOST":
      return "lost";
    case "COMPLETED":
      return "completed";
    case "FAILED":
    case "KILLED_OOM":
      return replaced ? null : "failed";
    case "STOPPED":
    case "REPLACED":
      return null;
  }
}

function countsOf(job: JobRow, tally: readonly ExecutionTally[]): ExecutionCounts {
  const counts = create(ExecutionCountsSchema);
  for (const row of tally) {
    const kind = kindOf(row);
    if (kind !== null && (row.current || isOpen(row))) counts[kind] += row.count;
  }
  const placed = counts.pending + counts.running + counts.ready + counts.lost;
  // In a batch or ops job, a replica whose execution has ended is done, so it does not wait.
  const done = job.type === "batch" || job.type === "ops" ? counts.completed + counts.failed : 0;
  if (job.state === "ACTIVE") counts.waiting = Math.max(0, wantedOf(job, tally) - placed - done);
  return counts;
}

function isOpen({ state }: ExecutionTally): boolean {
  return state === "LIVE" || state === "LOST" || state === "ORPHANED";
}

function wantedOf({ type, state, count, waitingNodes }: JobRow, tally: readonly ExecutionTally[]): number {
  if (type === "batch" || type === "service") return state === "STOPPED" ? 0 : count;
  const isWanted = (row: ExecutionTally) =>
    !row.replaced && row.current && (isOpen(row) ? row.desired === "RUN" : type === "ops");
  const placed = tally.filter(isWanted).reduce((sum, row) => sum + row.count, 0);
  return state === "ACTIVE" ? placed + waitingNodes : placed;
}

function updateOf(job: JobRow, tally: readonly ExecutionTally[]): JobUpdate | null {
  const running = tally.filter((row) => row.state === "LIVE" && row.desired === "RUN");
  const sum = (rows: readonly ExecutionTally[]) => rows.reduce((total, { count }) => total + count, 0);
  // Do not count replicas whose execution failed or is being replaced, because nothing runs for them.
  const isOpenPlace = (row: ExecutionTally) => (row.state === "LIVE" || row.state === "LOST") && !row.replaced;
  const total = job.type === "service" ? job.count : sum(tally.filter(isOpenPlace));
  const done = sum(running.filter(({ current, observed }) => current && observed === "READY"));
  const isGoing = running.some(({ current }) => !current) && (job.type === "service" || job.type === "daemon");
  if (!isGoing && job.halted === null) return null;
  return create(JobUpdateSchema, { done, total, halted: job.halted !== null, message: job.halted ?? "" });
}
