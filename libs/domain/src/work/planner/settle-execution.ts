import type { ExecutionRecord } from "../execution.ts";
import { isTerminal, settleEnd, settleGone } from "../execution-state.ts";
import { fits } from "../placement/amount-rows.ts";
import type { PoolNode } from "../placement/pool-node.ts";
import { changeExecution, endedPart, mayReact, type PlanContext } from "./plan-context.ts";
import { touchJob } from "./work-index.ts";
import { isReady, isSurged, type KnownExecution, type KnownJob, liveIn, placeOf } from "./work-state.ts";

/** Bring an execution's record in line with what its node says of it, and with what became of the node. */
export function settleExecution(context: PlanContext, known: KnownExecution): void {
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
    // A rejected node may be approved again with the execution still there: it is to be stopped then.
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

/** What is final stays so; only what it holds, and what its node is told, may change. */
function settleTerminal(context: PlanContext, known: KnownExecution, isGone: boolean): void {
  const { record, observation } = known;
  const isConfirmed = observation?.observed === "ENDED" || isGone;
  if (record.holds && isConfirmed) changeExecution(context, known, "FREED", { holds: false, desired: "FORGET" });
}

/** A lost execution whose node is back, or that its node has again. */
function settleLost(context: PlanContext, job: KnownJob | undefined, known: KnownExecution, node: PoolNode): void {
  const { record } = known;
  if (record.reason === "GONE") {
    const { grant } = record;
    const { millicores, memoryBytes, diskBytes, gpuUuids } = grant;
    const isFree =
      fits(node.free, { millicores, memoryBytes, diskBytes, gpus: gpuUuids.length }) &&
      gpuUuids.every((uuid) => !node.taken.gpus.has(uuid)) &&
      Object.values(grant.ports).every((port) => !node.taken.ports.has(port));
    // What it held may have been given away since.
    if (isFree) found(context, known, true);
    else if (record.desired === "RUN")
      changeExecution(context, known, "STOPPING", { desired: "STOP", reason: "NO_ROOM" });
    return;
  }
  if (node.node.reactionAllowed) {
    // It is replaced only while they are: it may have waited for that.
    lookAtPlace(context, job, record);
    return;
  }
  if (node.node.health !== "HEALTHY") return;
  if (record.desired !== "RUN") return;
  if (record.replacedBy === null || job === undefined) found(context, known, record.holds);
  else keepOne(context, job, known);
}

/** An execution came back that was replaced, and is kept unless its replacement is ready. */
function keepOne(context: PlanContext, job: KnownJob, original: KnownExecution): void {
  const place = placeOf(job, original.record);
  const live = place === undefined ? undefined : liveIn(place);
  if (live !== undefined && isReady(live, job.record)) {
    changeExecution(context, original, "STOPPING", { desired: "STOP" });
    return;
  }
  for (const other of [...(place?.executions ?? [])]) {
    // What an update keeps is the only one there that was ready.
    if (other === original || other.record.desired !== "RUN" || isSurged(other)) continue;
    changeExecution(context, other, "STOPPING", { desired: "STOP", reason: "ORIGINAL_RETURNED", message: "" });
  }
  found(context, original, original.record.holds);
}

function lookAtPlace({ state }: PlanContext, job: KnownJob | undefined, record: ExecutionRecord): void {
  const place = job === undefined ? undefined : placeOf(job, record);
  if (job === undefined || place === undefined) return;
  job.todo.add(place.index);
  touchJob(state, job);
}

function found(context: PlanContext, known: KnownExecution, holds: boolean): void {
  const part = { state: "LIVE", reason: "", message: "", lostAtMs: null, replacedBy: null, holds } as const;
  changeExecution(context, known, "FOUND", part);
}
