import type { Execution } from "../execution.ts";
import { isOutdated, type LiveJob, type WorkState } from "./work-state.ts";

/** Add an execution's grant to its node, or remove it, and update the job's counts. */
export function moveGrant(
  state: WorkState,
  job: LiveJob | undefined,
  before: Execution | null,
  after: Execution | null,
): void {
  const held = before?.holds === true;
  const holds = after?.holds === true;
  const { nodeId, grant } = (after ?? before) as Execution;
  if (job !== undefined) {
    const change = Number(after !== null && isStaying(job, after)) - Number(before !== null && isStaying(job, before));
    addCount(job.staying, nodeId, change);
  }
  if (held === holds) return;
  if (job !== undefined) addCount(job.counts, nodeId, holds ? 1 : -1);
  if (holds) state.pool.take(nodeId, grant);
  else state.pool.release(nodeId, grant);
}

/**
 * Whether an execution counts when a job is spread over nodes. An execution that an update or restart is about to
 * replace does not count.
 */
function isStaying({ record: job }: LiveJob, record: Execution): boolean {
  const isKept = job.halted !== null || !isOutdated(record, job);
  return record.holds && record.desired === "RUN" && record.replacedBy === null && isKept;
}

/** Recount the job's executions that stay on each node. Called after the job's version or run has changed. */
export function countStaying(job: LiveJob): void {
  job.staying.clear();
  job.search = null;
  for (const { executions } of job.places.values()) {
    for (const { record } of executions) if (isStaying(job, record)) addCount(job.staying, record.nodeId, 1);
  }
}

function addCount(counts: Map<string, number>, nodeId: string, change: number): void {
  if (change === 0) return;
  const count = (counts.get(nodeId) ?? 0) + change;
  if (count > 0) counts.set(nodeId, count);
  else counts.delete(nodeId);
}
