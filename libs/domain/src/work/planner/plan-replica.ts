import type { Execution } from "../execution.ts";
import type { ExecutionReason } from "../execution-state.ts";
import { chooseGrant } from "../placement/choose-grant.ts";
import { PlacementSearch } from "../placement/placement-search.ts";
import type { PoolNode } from "../placement/pool-node.ts";
import { FAILURES_TO_AVOID, nextInPlace, type ReplicaNext } from "../retry-replica.ts";
import { addExecution, changeExecution, endedPart, hasRoom, type PlanContext, scanNow } from "./plan-context.ts";
import { setOutcome } from "./work-index.ts";
import {
  isPlaced,
  isRefused,
  type JobReplica,
  type LiveExecution,
  type LiveJob,
  liveIn,
  placedVersion,
} from "./work-state.ts";

/** Maximum number of searches that are kept to be shared by jobs. */
const MOST_SHARED_SEARCHES = 256;

/** The result of an attempt to place an execution. */
export type Placed = "placed" | "no-node" | "no-room-in-plan";

/**
 * Place the next execution of a replica that has none, or schedule a review if it is too early for an execution.
 */
export function fillPlace(context: PlanContext, job: LiveJob, place: JobReplica): Placed | "nothing" {
  const { nowMs } = context;
  const { name } = job.record;
  if (place.outcome !== null) return "nothing";
  const next = nextOf(job, place);
  if (next.kind !== "again") {
    setOutcome(job, place, next.kind === "done" ? "done" : "failed");
    return "nothing";
  }
  const { attempt, notBeforeMs } = next;
  if (notBeforeMs > nowMs) {
    scanNow(context, { atMs: notBeforeMs, kind: "job", name, index: place.index });
    return "nothing";
  }
  const placed = placeExecution(context, job, place, { attempt, previous: null });
  if (placed === "placed") place.waitingSinceMs = null;
  return placed;
}

/**
 * Place an execution on the best node.
 *
 * @param how `previous` is the execution that the new one replaces; null for none.
 */
function placeExecution(
  context: PlanContext,
  job: LiveJob,
  place: JobReplica,
  how: { readonly attempt: number; readonly previous: LiveExecution | null },
): Placed {
  if (!hasRoom(context)) return "no-room-in-plan";
  const placed = placedVersion(job.record);
  if (placed === null || isRefused(job.record)) return "no-node";
  const node = findNode(context, job, place);
  const grant = node === null ? null : chooseGrant(node, job.request);
  if (node === null || grant === null) return "no-node";
  const { name, run } = job.record;
  // Write the fields one by one: thousands of these objects are created per second, and spreading an object is
  // several times slower.
  addExecution(context, {
    id: context.newId(),
    job: name,
    version: placed.version,
    run,
    index: place.index,
    nodeId: node.id,
    desired: "RUN",
    grant,
    holds: true,
    previous: how.previous?.record.id ?? place.last?.id ?? null,
    replacedBy: null,
    attempt: how.attempt,
    state: "LIVE",
    reason: "",
    message: "",
    createdAtMs: context.nowMs,
    lostAtMs: null,
    endedAtMs: null,
  });
  return "placed";
}

/**
 * Replace an execution with a new one. The same plan orders the old execution to stop, unless it is kept for
 * now.
 */
export function replaceExecution(
  context: PlanContext,
  job: LiveJob,
  place: JobReplica,
  why: { readonly old: LiveExecution; readonly reason: ExecutionReason; readonly isKept: boolean },
): Placed {
  const { old, reason, isKept } = why;
  const { attempt } = old.record;
  const placed = placeExecution(context, job, place, { attempt, previous: old });
  const live = liveIn(place);
  if (placed !== "placed" || live === undefined) return placed;
  const part: Partial<Execution> = { replacedBy: live.record.id, reason };
  if (old.record.reason === "GONE") {
    const end = { state: "REPLACED", reason, message: old.record.message } as const;
    changeExecution(context, old, "ENDED", { ...part, ...endedPart(end, context.nowMs) });
  } else {
    changeExecution(context, old, "REPLACING", isKept ? part : { ...part, desired: "STOP" });
  }
  return placed;
}

/** Order an execution to stop. */
export function stopExecution(context: PlanContext, known: LiveExecution, reason: ExecutionReason): void {
  const { record, observation } = known;
  if (record.desired !== "RUN") return;
  if (observation?.observed === "ENDED" && record.state === "LOST") {
    const end = { state: "STOPPED", reason, message: record.message } as const;
    changeExecution(context, known, "ENDED", endedPart(end, context.nowMs));
    return;
  }
  changeExecution(context, known, "STOPPING", { desired: "STOP", reason, message: "" });
}

/**
 * Decide the next step of a replica. Failures do not count if the replica's last execution had another version
 * than the one to place.
 */
function nextOf({ record, request }: LiveJob, { last, lastRanMs }: JobReplica): ReplicaNext {
  if (last === null) return FIRST;
  const next = nextInPlace(last, lastRanMs, request.spec);
  return next.kind !== "done" && !isPlaced(last, record) ? FIRST : next;
}

/**
 * Find the best node for the next execution of a replica. Nodes on which the job failed too often are used only
 * if no other node fits.
 */
function findNode({ state }: PlanContext, job: LiveJob, place: JobReplica): PoolNode | null {
  const search = searchOf(state.searches, state.pool, job);
  if (place.nodeId !== null) return search.onNode(place.nodeId);
  const best = search.best();
  if (best === null || (job.failures.get(best.id) ?? 0) < FAILURES_TO_AVOID) return best;
  const avoided = [...job.failures].flatMap(([id, failures]) => (failures < FAILURES_TO_AVOID ? [] : [id]));
  return search.bestBut(new Set(avoided)) ?? best;
}

/**
 * The search to use for a job. Jobs share a search if their requests are equal and consist only of amounts,
 * unless the number of executions per node matters.
 */
function searchOf(
  shared: Map<string, PlacementSearch>,
  pool: ConstructorParameters<typeof PlacementSearch>[0],
  job: LiveJob,
): PlacementSearch {
  if (job.search !== null) return job.search;
  const { request } = job;
  const isLeveled = request.spec.strategy === "even" && job.staying.size > 0;
  if (request.isPicky || isLeveled) {
    job.search = new PlacementSearch(pool, request, job);
    return job.search;
  }
  const known = shared.get(request.signature);
  const search = known ?? new PlacementSearch(pool, request, null);
  if (known === undefined) {
    if (shared.size >= MOST_SHARED_SEARCHES) shared.clear();
    shared.set(request.signature, search);
  }
  if (request.spec.strategy !== "even") job.search = search;
  return search;
}

const FIRST = { kind: "again", attempt: 0, notBeforeMs: 0 } as const;
