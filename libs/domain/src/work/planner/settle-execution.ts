import type { Execution } from "../execution.ts";
import { isTerminal, settleEnd, settleGone } from "../execution-state.ts";
import { fits } from "../placement/amount-rows.ts";
import type { PoolNode } from "../placement/pool-node.ts";
import { changeExecution, endedPart, mayReact, type PlanContext } from "./plan-context.ts";
import { touchJob } from "./work-index.ts";
import { isReady, isSurged, type LiveExecution, type LiveJob, liveIn, placeOf } from "./work-state.ts";

/** Update an execution's state from the state and the report of its node. */
export function settleExecution(context: PlanContext, known: LiveExecution): void {
  const { state, nowMs } = context;
  const { record, observation } = known;
  const job = state.jobs.get(record.job);
  const type = job?.record.spec.type ?? "service";
  const node = state.pool.get(record.nodeId);
  const isGone = node === undefined || node.node.membership === "REJECTED";
  if (isTerminal(record.state)) {
    settleTerminal(context, known, isGone);
    return;
  }
  if (isGone) {
    const end = settleGone(record, type, node === undefined ? "NODE_DELETED" : "NODE_REJECTED");
    // Order the execution to stop, because the node may still run it and may be approved again.
    changeExecution(context, known, "ENDED", { ...endedPart(end, nowMs), desired: "STOP" });
    return;
  }
  if (observation?.observed === "ENDED") {
    const end = settleEnd(record, observation, type);
    if (end !== null) changeExecution(context, known, "ENDED", endedPart(end, nowMs));
    else if (record.holds) {
      const lostAtMs = record.lostAtMs ?? nowMs;
      changeExecution(context, known, "LOST", { state: "LOST", reason: "GONE", holds: false, lostAtMs });
    }
    return;
  }
  if (record.state === "LOST") {
    settleLost(context, job, known, node);
    return;
  }
  if (record.desired !== "RUN" || !mayReact(context, record.nodeId)) return;
  if (type === "ops") {
    const end = { state: "FAILED", reason: "NODE_LOST", message: "" } as const;
    changeExecution(context, known, "ENDED", { ...endedPart(end, nowMs), desired: "STOP", holds: true });
    return;
  }
  changeExecution(context, known, "LOST", { state: "LOST", reason: "NODE_LOST", lostAtMs: nowMs });
}

/** Update an execution in a final state. Only its grant and the order for its node can change. */
function settleTerminal(context: PlanContext, known: LiveExecution, isGone: boolean): void {
  const { record, observation } = known;
  const isConfirmed = observation?.observed === "ENDED" || isGone;
  if (record.holds && isConfirmed) changeExecution(context, known, "FREED", { holds: false, desired: "FORGET" });
}

/** Update a lost execution whose node has returned, or reports it again. */
function settleLost(context: PlanContext, job: LiveJob | undefined, known: LiveExecution, node: PoolNode): void {
  const { record } = known;
  if (record.reason === "GONE") {
    const { grant } = record;
    const { millicores, memoryBytes, diskBytes, gpuUuids } = grant;
    const isFree =
      fits(node.free, { millicores, memoryBytes, diskBytes, gpus: gpuUuids.length }) &&
      gpuUuids.every((uuid) => !node.taken.gpus.has(uuid)) &&
      Object.values(grant.ports).every((port) => !node.taken.ports.has(port));
    // Stop the execution if its resources have been granted to other executions in the meantime.
    if (isFree) found(context, known, true);
    else if (record.desired === "RUN")
      changeExecution(context, known, "STOPPING", { desired: "STOP", reason: "NO_ROOM" });
    return;
  }
  if (node.node.reactionAllowed) {
    // Review the execution's replica, which may have waited until reactions were allowed.
    scanReplica(context, job, record);
    return;
  }
  if (node.node.health !== "HEALTHY") return;
  if (record.desired !== "RUN") return;
  if (record.replacedBy === null || job === undefined) found(context, known, record.holds);
  else keepOne(context, job, known);
}

/**
 * When an execution that was replaced returns, decide whether to keep the execution or its replacement. The
 * execution stays, unless its replacement is ready.
 */
function keepOne(context: PlanContext, job: LiveJob, original: LiveExecution): void {
  const place = placeOf(job, original.record);
  const live = place === undefined ? undefined : liveIn(place);
  if (live !== undefined && isReady(live, job.record)) {
    changeExecution(context, original, "STOPPING", { desired: "STOP" });
    return;
  }
  for (const other of [...(place?.executions ?? [])]) {
    // Do not stop an execution that an update keeps, because it is the only ready execution of the replica.
    if (other === original || other.record.desired !== "RUN" || isSurged(other)) continue;
    changeExecution(context, other, "STOPPING", { desired: "STOP", reason: "ORIGINAL_RETURNED", message: "" });
  }
  found(context, original, original.record.holds);
}

function scanReplica({ state }: PlanContext, job: LiveJob | undefined, record: Execution): void {
  const place = job === undefined ? undefined : placeOf(job, record);
  if (job === undefined || place === undefined) return;
  job.todo.add(place.index);
  touchJob(state, job);
}

function found(context: PlanContext, known: LiveExecution, holds: boolean): void {
  const part = { state: "LIVE", reason: "", message: "", lostAtMs: null, replacedBy: null, holds } as const;
  changeExecution(context, known, "FOUND", part);
}
