import type { Execution, ExecutionState, Observation, StoredState, TerminalState } from "./execution.ts";
import { EXECUTION_ID_PATTERN } from "./execution-id.ts";
import type { JobType } from "./job-spec.ts";
import type { WorkNode } from "./work-node.ts";

/** Why an execution was stopped, was lost or has ended, for machines. */
export type ExecutionReason =
  // How the execution ended on its node.
  | "EXITED"
  | "SIGNALLED"
  | "OOM"
  | "START_FAILED"
  | "CHECK_FAILED"
  | "DEADLINE_EXCEEDED"
  | "CONTROL_PLANE_LOST"
  | "STOPPED_ON_NODE"
  // What happened to the execution's node.
  | "NODE_LOST"
  | "GONE"
  | "NODE_DELETED"
  | "NODE_REJECTED"
  | "NODE_DRAINED"
  | "UNCONFIRMED"
  | "NODE_LABELS_CHANGED"
  | "NODE_CONDITION"
  // Why the execution is no longer wanted.
  | "JOB_STOPPED"
  | "JOB_UPDATED"
  | "JOB_RESTARTED"
  | "SCALED_DOWN"
  | "EXECUTION_STOPPED"
  | "ORIGINAL_RETURNED"
  | "DUPLICATE"
  | "NO_ROOM";

/** The recorded end of an execution. */
export interface SettledEnd {
  readonly state: TerminalState;
  readonly reason: string;
  readonly message: string;
}

/**
 * The allowed transitions. A lost execution that returns is live again. A final state never changes, whatever the
 * node reports later.
 */
const NEXT_STATES: Readonly<Record<StoredState, readonly StoredState[]>> = {
  LIVE: ["LOST", "COMPLETED", "FAILED", "STOPPED", "KILLED_OOM", "REPLACED"],
  LOST: ["LIVE", "COMPLETED", "FAILED", "STOPPED", "KILLED_OOM", "REPLACED"],
  COMPLETED: [],
  FAILED: [],
  STOPPED: [],
  KILLED_OOM: [],
  REPLACED: [],
};

/** Whether one stored state can follow another. */
export function mayFollow(before: StoredState, after: StoredState): boolean {
  return before === after || NEXT_STATES[before].includes(after);
}

export function isTerminal(state: StoredState): state is TerminalState {
  return NEXT_STATES[state].length === 0;
}

/**
 * Whether one of two executions of a replica was created after the other. Schedulers create ids in ascending order,
 * regardless of clocks. An id in another format belongs to an adopted execution, which is older than any execution
 * that a scheduler created to replace it.
 */
export function isNewer(one: Pick<Execution, "run" | "id">, other: Pick<Execution, "run" | "id">): boolean {
  if (one.run !== other.run) return one.run > other.run;
  const [isOurs, isOtherOurs] = [EXECUTION_ID_PATTERN.test(one.id), EXECUTION_ID_PATTERN.test(other.id)];
  return isOurs === isOtherOurs ? one.id > other.id : isOurs;
}

/**
 * The state of an execution for people and the API. An execution that runs although its end was recorded is shown as
 * RUNNING until it has stopped, see stopRevived(). It is never shown as READY, because a READY execution counts for
 * its job.
 *
 * @param node null if the node was deleted.
 */
export function shownState(
  record: Pick<Execution, "state">,
  observation: Pick<Observation, "observed"> | null,
  node: Pick<WorkNode, "health"> | null,
): ExecutionState {
  const isNodeHealthy = node?.health === "HEALTHY";
  if (record.state !== "LIVE") {
    const isRevived = isNodeHealthy && isTerminal(record.state) && isAlive(observation);
    return isRevived ? "RUNNING" : record.state;
  }
  if (!isNodeHealthy) return "LOST";
  switch (observation?.observed) {
    case undefined:
      return "PENDING";
    case "ENDED":
      // The end will be recorded soon. Until then, the execution counts as RUNNING.
      return "RUNNING";
    case "STARTING":
    case "RUNNING":
    case "READY":
      return observation?.observed ?? "PENDING";
  }
}

/**
 * How to record the end of an execution that its node reports as ended. An execution that was ordered to stop is
 * recorded as replaced if another execution replaced it, otherwise as completed if it completed, otherwise with the
 * reason for the order. Returns null for an execution that should run and that its node does not have: it is lost
 * rather than ended.
 */
export function settleEnd(record: Execution, observation: Observation, type: JobType): SettledEnd | null {
  const { message } = observation;
  const isOnce = type === "batch" || type === "ops";
  const isDone = isOnce && observation.end === "EXITED" && observation.exitCode === 0;
  if (record.replacedBy !== null) return { state: "REPLACED", reason: record.reason, message: record.message };
  if (record.desired !== "RUN") {
    if (isDone) return { state: "COMPLETED", reason: "EXITED", message };
    // Let a drained ops job fail, because it cannot run on another node.
    const state = type === "ops" && record.reason === "NODE_DRAINED" ? "FAILED" : "STOPPED";
    return { state, reason: record.reason, message: record.message };
  }
  switch (observation.end) {
    case "OOM":
      return { state: "KILLED_OOM", reason: "OOM", message };
    case "START_FAILED":
    case "CHECK_FAILED":
    case "DEADLINE_EXCEEDED":
    case "CONTROL_PLANE_LOST":
      return { state: "FAILED", reason: observation.end, message };
    case "STOPPED":
      return { state: "FAILED", reason: "STOPPED_ON_NODE", message };
    case "GONE":
      return type === "ops" ? { state: "FAILED", reason: "GONE", message } : null;
    case "EXITED":
    case null:
      return exited(observation);
  }
}

/**
 * How to record the end of an execution whose node is permanently gone, so that the end cannot be confirmed. An
 * execution that an operator stopped stays stopped, and does not run again elsewhere.
 */
export function settleGone(record: Execution, type: JobType, reason: ExecutionReason): SettledEnd {
  if (record.replacedBy !== null) return { state: "REPLACED", reason: record.reason, message: record.message };
  const wasStopped = record.desired === "STOP" && record.reason === "EXECUTION_STOPPED";
  if (wasStopped) return { state: "STOPPED", reason: record.reason, message: record.message };
  return { state: type === "ops" ? "FAILED" : "STOPPED", reason, message: "" };
}

/** How to record the end of an execution that belongs to no job. The end has no consequences. */
export function settleOrphan(record: Execution, observation: Observation, type: JobType): SettledEnd {
  return settleEnd(record, observation, type) ?? settleGone(record, type, "GONE");
}

/** The reasons of ends that are recorded without knowing how the program ended. */
const UNSEEN_ENDS: ReadonlySet<string> = new Set([
  ...["NODE_LOST", "GONE", "NODE_DELETED", "NODE_REJECTED", "UNCONFIRMED"],
]);

/**
 * Whether the exit code and signal that a node reports belong to the recorded end. If not, it is unknown how the
 * program ended, and a later report only describes how it was stopped.
 */
export function isEndSeen(reason: string): boolean {
  return !UNSEEN_ENDS.has(reason);
}

/**
 * The execution with an order to stop, if it runs although its end was recorded; null if it does not run. The
 * recorded state stays.
 */
export function stopRevived(record: Execution, observation: Observation): Execution | null {
  if (!isTerminal(record.state) || !isAlive(observation) || record.desired !== "FORGET") return null;
  return { ...record, desired: "STOP" };
}

function isAlive(observation: Pick<Observation, "observed"> | null): boolean {
  return observation !== null && observation.observed !== "ENDED";
}

function exited({ exitCode, signal, message }: Observation): SettledEnd {
  if (signal !== null && signal !== "") return { state: "FAILED", reason: "SIGNALLED", message: message || signal };
  if (exitCode === 0) return { state: "COMPLETED", reason: "EXITED", message };
  return { state: "FAILED", reason: "EXITED", message: message || `exit code ${exitCode ?? "unknown"}` };
}
