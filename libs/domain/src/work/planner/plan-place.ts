import type { ExecutionRecord } from "../execution.ts";
import type { ExecutionReason } from "../execution-state.ts";
import { chooseGrant } from "../placement/choose-grant.ts";
import { PlacementSearch } from "../placement/placement-search.ts";
import type { PoolNode } from "../placement/pool-node.ts";
import { FAILURES_TO_AVOID, nextInPlace, type PlaceNext } from "../retry-place.ts";
import { addExecution, changeExecution, endedPart, hasRoom, lookAt, type PlanContext } from "./plan-context.ts";
import { setOutcome } from "./work-index.ts";
import {
  isPlaced,
  isRefused,
  type KnownExecution,
  type KnownJob,
  liveIn,
  type Place,
  placedVersion,
} from "./work-state.ts";

/** Searches that are shared at most. */
const MOST_SHARED_SEARCHES = 256;

/** What came of an attempt to place an execution. */
export type Placed = "placed" | "no-node" | "no-room-in-plan";

/** Place the next execution of a place in which there is none, if it is time; what it waits for is remembered. */
export function fillPlace(context: PlanContext, job: KnownJob, place: Place): Placed | "nothing" {
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
    lookAt(context, { atMs: notBeforeMs, kind: "job", name, index: place.index });
    return "nothing";
  }
  const placed = placeExecution(context, job, place, { attempt, previous: null });
  if (placed === "placed") place.waitingSinceMs = null;
  return placed;
}

/**
 * Place an execution on the best node.
 *
 * @param how `previous` is the execution that it replaces, which is told to stop unless it is kept.
 */
function placeExecution(
  context: PlanContext,
  job: KnownJob,
  place: Place,
  how: { readonly attempt: number; readonly previous: KnownExecution | null },
): Placed {
  if (!hasRoom(context)) return "no-room-in-plan";
  const placed = placedVersion(job.record);
  if (placed === null || isRefused(job.record)) return "no-node";
  const node = findNode(context, job, place);
  const grant = node === null ? null : chooseGrant(node, job.request);
  if (node === null || grant === null) return "no-node";
  const { name, run } = job.record;
  // Written out, since thousands of these are made in a second: to spread objects costs several times as much.
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

/** Replace an execution by one elsewhere; the old one is told to stop in the same transaction. */
export function replaceExecution(
  context: PlanContext,
  job: KnownJob,
  place: Place,
  why: { readonly old: KnownExecution; readonly reason: ExecutionReason; readonly isKept: boolean },
): Placed {
  const { old, reason, isKept } = why;
  const { attempt } = old.record;
  const placed = placeExecution(context, job, place, { attempt, previous: old });
  const live = liveIn(place);
  if (placed !== "placed" || live === undefined) return placed;
  const part: Partial<ExecutionRecord> = { replacedBy: live.record.id, reason };
  if (old.record.reason === "GONE") {
    const end = { state: "REPLACED", reason, message: old.record.message } as const;
    changeExecution(context, old, "ENDED", { ...part, ...endedPart(end, context.nowMs) });
  } else {
    changeExecution(context, old, "REPLACING", isKept ? part : { ...part, desired: "STOP" });
  }
  return placed;
}

/** Tell an execution to stop. */
export function stopExecution(context: PlanContext, known: KnownExecution, reason: ExecutionReason): void {
  const { record, observation } = known;
  if (record.desired !== "RUN") return;
  if (observation?.observed === "ENDED" && record.state === "LOST") {
    const end = { state: "STOPPED", reason, message: record.message } as const;
    changeExecution(context, known, "ENDED", endedPart(end, context.nowMs));
    return;
  }
  changeExecution(context, known, "STOPPING", { desired: "STOP", reason, message: "" });
}

/** What follows in a place. How another version failed says nothing of the one that is placed. */
function nextOf({ record, request }: KnownJob, { last, lastRanMs }: Place): PlaceNext {
  if (last === null) return FIRST;
  const next = nextInPlace(last, lastRanMs, request.spec);
  return next.kind !== "done" && !isPlaced(last, record) ? FIRST : next;
}

/** The node for the next execution of a place. One on which the job failed too often is the last choice. */
function findNode({ state }: PlanContext, job: KnownJob, place: Place): PoolNode | null {
  const search = searchOf(state.searches, state.pool, job);
  if (place.nodeId !== null) return search.onNode(place.nodeId);
  const best = search.best();
  if (best === null || (job.failures.get(best.id) ?? 0) < FAILURES_TO_AVOID) return best;
  const avoided = [...job.failures].flatMap(([id, failures]) => (failures < FAILURES_TO_AVOID ? [] : [id]));
  return search.bestBut(new Set(avoided)) ?? best;
}

/** Jobs that ask for the same, and for the amounts alone, share a search as long as their executions do not matter. */
function searchOf(
  shared: Map<string, PlacementSearch>,
  pool: ConstructorParameters<typeof PlacementSearch>[0],
  job: KnownJob,
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
