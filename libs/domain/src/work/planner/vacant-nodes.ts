import { isMatch } from "../placement/placement-search.ts";
import { matchingNodes } from "../placement/refusals.ts";
import { isPerNode, type LiveJob, type WorkState } from "./work-state.ts";

/**
 * Count the nodes that should run an ops job or daemon and have no execution of it; 0 for other jobs. Only replicas
 * that exist count: a memory that has planned the job has one for each node, others lack `untouchedNodes()`.
 */
export function countVacant(state: WorkState, job: LiveJob): number {
  const { record, places, empty, waiting } = job;
  if (!isPerNode(record) || record.state !== "ACTIVE") return 0;
  const isDaemon = record.spec.type === "daemon";
  let found = 0;
  for (const index of isDaemon ? empty : waiting) {
    const place = places.get(index);
    if (place === undefined || place.nodeId === null || place.executions.length > 0) continue;
    // The last execution of an ops job counts as one of its executions, even before it is tried again.
    if (isDaemon ? takesWork(state, job, place.nodeId) : place.last === null) found += 1;
  }
  return found;
}

/** The nodes that should run an ops job or daemon and have never had a replica of it, sorted; empty for other jobs. */
export function untouchedNodes(state: WorkState, job: LiveJob): readonly string[] {
  const { record, request, replicaByNode } = job;
  if (!isPerNode(record) || record.state !== "ACTIVE" || record.placed) return [];
  return matchingNodes(state.pool, request).filter((nodeId) => !replicaByNode.has(nodeId));
}

/** Whether a node can run the job if it has room. */
export function takesWork({ pool }: WorkState, { request }: LiveJob, nodeId: string): boolean {
  const of = pool.classOf(nodeId);
  return of !== undefined && isMatch(of, request);
}
