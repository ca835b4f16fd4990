import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Execution, ExecutionSchema, ExecutionState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import {
  DesiredState,
  EndReason,
  type ExecutionObservation,
  ExecutionObservationSchema,
  ObservedState,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import {
  type Desired,
  type EndReason as DomainEnd,
  type ExecutionState as DomainState,
  isTerminal,
  type Observation,
  type Observed,
  shownState,
} from "@rollcall/domain";
import type { ExecutionRow, ObservationRow } from "@rollcall/store";

/**
 * Number of consecutive complete reports without an execution after which the execution counts as gone. The first
 * report may have been sent before the node received the execution.
 */
const REPORTS_THAT_LACK = 2;

/** The message of a revived execution, see isRevived(). */
export const REVIVED = "still running on its node although it has ended; it is being stopped";

/** The public message of an execution. */
export function executionToProto(stored: ExecutionRow): Execution {
  const { execution, observation } = stored;
  const { endedAtMs, grant } = execution;
  return create(ExecutionSchema, {
    id: execution.id,
    job: execution.job,
    version: execution.version,
    run: execution.run,
    index: execution.index,
    nodeId: execution.nodeId,
    desired: DESIRED[stored.order?.kind === "STOP" && execution.desired === "RUN" ? "STOP" : execution.desired],
    state: STATES[stateOf(stored)],
    reason: execution.reason,
    message: isRevived(stored) ? REVIVED : execution.message,
    ...(observation === null ? {} : { observation: observationToProto(stored, observation) }),
    previousId: execution.previous ?? "",
    replacedById: execution.replacedBy ?? "",
    attempt: execution.attempt,
    ports: grant.ports,
    gpuUuids: [...grant.gpuUuids],
    createTime: timestampFromMs(execution.createdAtMs),
    ...(endedAtMs === null ? {} : { endTime: timestampFromMs(endedAtMs) }),
  });
}

/** The displayed state of an execution. */
export function stateOf({ execution, isOrphan, observation, isNodeHealthy }: ExecutionRow): DomainState {
  if (isOrphan) return "ORPHANED";
  return shownState(execution, toObservation(observation), { health: isNodeHealthy ? "HEALTHY" : "UNHEALTHY" });
}

/** Whether the node runs the execution although the store has its end. */
export function isRevived(stored: ExecutionRow): boolean {
  return !stored.isOrphan && isTerminal(stored.execution.state) && stateOf(stored) === "RUNNING";
}

/** Convert the states in a request to those of the domain. */
export function statesFromProto(states: readonly ExecutionState[]): ReadonlySet<DomainState> {
  const names = Object.keys(STATES) as DomainState[];
  return new Set(names.filter((name) => states.includes(STATES[name])));
}

function observationToProto({ execution, specDigest }: ExecutionRow, seen: ObservationRow): ExecutionObservation {
  const { startedAtMs, endedAtMs, exitCode } = seen;
  return create(ExecutionObservationSchema, {
    id: execution.id,
    state: OBSERVED[seen.observed],
    ...(startedAtMs === null ? {} : { startTime: timestampFromMs(startedAtMs) }),
    ...(endedAtMs === null ? {} : { endTime: timestampFromMs(endedAtMs) }),
    endReason: seen.end === null ? EndReason.UNSPECIFIED : ENDS[seen.end],
    ...(exitCode === null ? {} : { exitCode }),
    signal: seen.signal ?? "",
    message: seen.message,
    job: execution.job,
    specDigest,
  });
}

const DESIRED: Readonly<Record<Desired, DesiredState>> = {
  RUN: DesiredState.RUN,
  STOP: DesiredState.STOP,
  FORGET: DesiredState.FORGET,
};
const STATES: Readonly<Record<DomainState, ExecutionState>> = {
  PENDING: ExecutionState.PENDING,
  STARTING: ExecutionState.STARTING,
  RUNNING: ExecutionState.RUNNING,
  READY: ExecutionState.READY,
  LOST: ExecutionState.LOST,
  ORPHANED: ExecutionState.ORPHANED,
  COMPLETED: ExecutionState.COMPLETED,
  FAILED: ExecutionState.FAILED,
  STOPPED: ExecutionState.STOPPED,
  KILLED_OOM: ExecutionState.KILLED_OOM,
  REPLACED: ExecutionState.REPLACED,
};
const OBSERVED: Readonly<Record<Observed | "ABSENT", ObservedState>> = {
  ABSENT: ObservedState.UNSPECIFIED,
  STARTING: ObservedState.STARTING,
  RUNNING: ObservedState.RUNNING,
  READY: ObservedState.READY,
  ENDED: ObservedState.ENDED,
};
const ENDS: Readonly<Record<DomainEnd, EndReason>> = {
  EXITED: EndReason.EXITED,
  OOM: EndReason.OOM,
  STOPPED: EndReason.STOPPED,
  START_FAILED: EndReason.START_FAILED,
  CHECK_FAILED: EndReason.CHECK_FAILED,
  DEADLINE_EXCEEDED: EndReason.DEADLINE_EXCEEDED,
  CONTROL_PLANE_LOST: EndReason.CONTROL_PLANE_LOST,
  GONE: EndReason.GONE,
};

/**
 * Convert a stored observation to a domain value; null for none. An execution that its node no longer reports
 * counts as gone.
 */
export function toObservation(seen: ExecutionRow["observation"]): Observation | null {
  if (seen === null) return null;
  const { observed, missing, epoch, report, startedAtMs, endedAtMs, end, exitCode, signal, message } = seen;
  const said = { epoch, report, startedAtMs, endedAtMs, exitCode, signal, message };
  if (missing >= REPORTS_THAT_LACK && observed !== "ENDED") return { ...said, observed: "ENDED", end: "GONE" };
  return observed === "ABSENT" ? null : { ...said, observed, end };
}
