import type { ExecutionRecord } from "../execution.ts";
import { isOutdated, type KnownJob, type WorkState } from "./work-state.ts";

/** Take what an execution holds off its node, or return it, and count it for its job. */
export function moveGrant(
  state: WorkState,
  job: KnownJob | undefined,
  before: ExecutionRecord | null,
  after: ExecutionRecord | null,
): void {
  const held = before?.holds === true;
  const holds = after?.holds === true;
  const { nodeId, grant } = (after ?? before) as ExecutionRecord;
  if (job !== undefined) {
    const change = Number(after !== null && isStaying(job, after)) - Number(before !== null && isStaying(job, before));
    addCount(job.staying, nodeId, change);
  }
  if (held === holds) return;
  if (job !== undefined) addCount(job.counts, nodeId, holds ? 1 : -1);
  if (holds) state.pool.take(nodeId, grant);
  else state.pool.release(nodeId, grant);
}

/** Whether an execution counts where a job is spread: what an update or a restart is about to replace does not. */
function isStaying({ record: job }: KnownJob, record: ExecutionRecord): boolean {
  const isKept = job.halted !== null || !isOutdated(record, job);
  return record.holds && record.desired === "RUN" && record.replacedBy === null && isKept;
}

/** Count the executions of a job that are to stay again: its version or its run is another. */
export function countStaying(job: KnownJob): void {
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
