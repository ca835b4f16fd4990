import type { ExecutionRecord, ExecutionState, Observation, RecordedState, TerminalState } from "./execution.ts";
import { EXECUTION_ID_PATTERN } from "./execution-id.ts";
import type { JobType } from "./job-spec.ts";
import type { WorkNode } from "./work-node.ts";

/** Why an execution is told to stop, is lost or has ended, for machines. */
export type ExecutionReason =
  // Ends by itself.
  | "EXITED"
  | "SIGNALLED"
  | "OOM"
  | "START_FAILED"
  | "CHECK_FAILED"
  | "DEADLINE_EXCEEDED"
  | "CONTROL_PLANE_LOST"
  | "STOPPED_ON_NODE"
  // What happened to its node.
  | "NODE_LOST"
  | "GONE"
  | "NODE_DELETED"
  | "NODE_REJECTED"
  | "NODE_DRAINED"
  | "UNCONFIRMED"
  | "NODE_LABELS_CHANGED"
  | "NODE_CONDITION"
  // What was wanted.
  | "JOB_STOPPED"
  | "JOB_UPDATED"
  | "JOB_RESTARTED"
  | "SCALED_DOWN"
  | "EXECUTION_STOPPED"
  | "ORIGINAL_RETURNED"
  | "DUPLICATE"
  | "NO_ROOM";

/** How an execution is recorded after its end. */
export interface SettledEnd {
  readonly state: TerminalState;
  readonly reason: string;
  readonly message: string;
}

/**
 * What follows from what. A lost execution that is seen again is live again; what is final stays so, whatever its node
 * reports later.
 */
const NEXT_STATES: Readonly<Record<RecordedState, readonly RecordedState[]>> = {
  LIVE: ["LOST", "COMPLETED", "FAILED", "STOPPED", "KILLED_OOM", "REPLACED"],
  LOST: ["LIVE", "COMPLETED", "FAILED", "STOPPED", "KILLED_OOM", "REPLACED"],
  COMPLETED: [],
  FAILED: [],
  STOPPED: [],
  KILLED_OOM: [],
  REPLACED: [],
};

/** Whether one recorded state may follow another. */
export function mayFollow(before: RecordedState, after: RecordedState): boolean {
  return before === after || NEXT_STATES[before].includes(after);
}

/** Whether a state is final. */
export function isTerminal(state: RecordedState): state is TerminalState {
  return NEXT_STATES[state].length === 0;
}

/**
 * Whether one of two executions of a place came after the other. Schedulers make ids in ascending order, whatever their
 * clocks do. An id of another form belongs to an execution that was adopted, before the scheduler replaced it.
 */
export function isNewer(one: Pick<ExecutionRecord, "run" | "id">, other: Pick<ExecutionRecord, "run" | "id">): boolean {
  if (one.run !== other.run) return one.run > other.run;
  const [isOurs, isOtherOurs] = [EXECUTION_ID_PATTERN.test(one.id), EXECUTION_ID_PATTERN.test(other.id)];
  return isOurs === isOtherOurs ? one.id > other.id : isOurs;
}

/**
 * Where an execution stands, for people and the API. One that runs although its end was recorded is shown running until
 * it has stopped, see stopRevived(); never READY, which counts for its job.
 *
 * @param node null for one that is gone.
 */
export function shownState(
  record: Pick<ExecutionRecord, "state">,
  observation: Pick<Observation, "observed"> | null,
  node: Pick<WorkNode, "health"> | null,
): ExecutionState {
  const isNodeWell = node?.health === "HEALTHY";
  if (record.state !== "LIVE") {
    const isRevived = isNodeWell && isTerminal(record.state) && isAlive(observation);
    return isRevived ? "RUNNING" : record.state;
  }
  if (!isNodeWell) return "LOST";
  switch (observation?.observed) {
    case undefined:
      return "PENDING";
    case "ENDED":
      // Its end is about to be recorded.
      return "RUNNING";
    case "STARTING":
    case "RUNNING":
    case "READY":
      return observation?.observed ?? "PENDING";
  }
}

/**
 * How an execution that its node reports as ended is recorded; null for one that its node does not have although it
 * should run: it is lost. Which of two ends counts when it was told to stop: what replaced it, then what it did itself.
 */
export function settleEnd(record: ExecutionRecord, observation: Observation, type: JobType): SettledEnd | null {
  const { message } = observation;
  const isOnce = type === "batch" || type === "ops";
  const isDone = isOnce && observation.end === "EXITED" && observation.exitCode === 0;
  if (record.replacedBy !== null) return { state: "REPLACED", reason: record.reason, message: record.message };
  if (record.desired !== "RUN") {
    if (isDone) return { state: "COMPLETED", reason: "EXITED", message };
    // An ops job is done on its node or not at all.
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
 * How an execution is recorded whose node is gone for good, so that none of it can be confirmed. What an operator
 * stopped stays stopped for that: it is not run again elsewhere.
 */
export function settleGone(record: ExecutionRecord, type: JobType, reason: ExecutionReason): SettledEnd {
  if (record.replacedBy !== null) return { state: "REPLACED", reason: record.reason, message: record.message };
  const wasStopped = record.desired === "STOP" && record.reason === "EXECUTION_STOPPED";
  if (wasStopped) return { state: "STOPPED", reason: record.reason, message: record.message };
  return { state: type === "ops" ? "FAILED" : "STOPPED", reason, message: "" };
}

/** How the end of an execution is recorded that no job has, so that nothing else follows from it. */
export function settleOrphan(record: ExecutionRecord, observation: Observation, type: JobType): SettledEnd {
  return settleEnd(record, observation, type) ?? settleGone(record, type, "GONE");
}

/** Reasons of ends that are recorded without the node's report of how the program ended. */
const UNSEEN_ENDS: ReadonlySet<string> = new Set([
  ...["NODE_LOST", "GONE", "NODE_DELETED", "NODE_REJECTED", "UNCONFIRMED"],
]);

/**
 * Whether the exit code and the signal that a node reports are those of the recorded end. Otherwise how the program
 * ended is unknown: what a node reports later is how it was stopped.
 */
export function isEndSeen(reason: string): boolean {
  return !UNSEEN_ENDS.has(reason);
}

/**
 * An execution that runs although its end was recorded is to be told to stop again; null for one that does not. Its
 * record stays final.
 */
export function stopRevived(record: ExecutionRecord, observation: Observation): ExecutionRecord | null {
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
