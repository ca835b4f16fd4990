import type { DescEnum } from "@bufbuild/protobuf";
import {
  type Execution,
  type ExecutionCounts,
  ExecutionState,
  ExecutionStateSchema,
  type Job,
  JobState,
  JobStateSchema,
  type PlacementRefusal,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType, JobTypeSchema, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { isEndSeen, stateWords } from "@rollcall/domain";
import type { EXECUTION_STATE_WORDS, JOB_STATE_WORDS, JOB_TYPE_WORDS } from "../choices.ts";
import { counted, printable } from "../output/text.ts";

// The API's enums are open: a newer server may send a value that this program does not know. Such a value is shown
// as its number.

/** "batch", "service", "ops" or "daemon". */
export function jobTypeWord(type: JobType | undefined): string {
  return word(JobTypeSchema, type).toLowerCase();
}

/** ACTIVE, STOPPED, COMPLETED or FAILED. */
export function jobStateWord(state: JobState): string {
  return word(JobStateSchema, state);
}

/** PENDING, RUNNING, READY and so on. */
export function executionStateWord(state: ExecutionState): string {
  return word(ExecutionStateSchema, state);
}

/** --states of `job list`. */
export const JOB_STATES: Readonly<Record<(typeof JOB_STATE_WORDS)[number], JobState>> = {
  active: JobState.ACTIVE,
  stopped: JobState.STOPPED,
  completed: JobState.COMPLETED,
  failed: JobState.FAILED,
};

/** --types of `job list`. */
export const JOB_TYPES: Readonly<Record<(typeof JOB_TYPE_WORDS)[number], JobType>> = {
  batch: JobType.BATCH,
  service: JobType.SERVICE,
  ops: JobType.OPS,
  daemon: JobType.DAEMON,
};

/** --states of `job executions`. */
export const EXECUTION_STATES: Readonly<Record<(typeof EXECUTION_STATE_WORDS)[number], ExecutionState>> = {
  pending: ExecutionState.PENDING,
  starting: ExecutionState.STARTING,
  running: ExecutionState.RUNNING,
  ready: ExecutionState.READY,
  lost: ExecutionState.LOST,
  orphaned: ExecutionState.ORPHANED,
  completed: ExecutionState.COMPLETED,
  failed: ExecutionState.FAILED,
  stopped: ExecutionState.STOPPED,
  "killed-oom": ExecutionState.KILLED_OOM,
  replaced: ExecutionState.REPLACED,
};

/** Whether the job ends at some point, as batch and ops jobs do; services and daemons are kept running. */
export function runsToCompletion({ spec }: Pick<Job, "spec">): boolean {
  return spec?.type === JobType.BATCH || spec?.type === JobType.OPS;
}

/** A job's progress in a few words: "2 of 3 ready, 1 waiting", or "1 of 3 completed, 2 running". */
export function countWords(job: Pick<Job, "spec" | "wanted" | "executions">): string {
  const { wanted, executions } = job;
  const counts: Partial<ExecutionCounts> = executions ?? {};
  const {
    ready = 0,
    completed = 0,
    failed = 0,
    waiting = 0,
    pending = 0,
    running = 0,
    lost = 0,
    stopping = 0,
  } = counts;
  // Count ready executions of such a job as running, because only completed executions count as done.
  const ends = runsToCompletion(job);
  const active = ends ? running + ready : running;
  const parts = [
    ends ? `${completed} of ${wanted} completed` : `${ready} of ${wanted} ready`,
    ...(active > 0 ? [`${active} running`] : []),
    ...(pending > 0 ? [`${pending} placed`] : []),
    ...(waiting > 0 ? [`${waiting} waiting`] : []),
    ...(lost > 0 ? [`${lost} lost`] : []),
    ...(stopping > 0 ? [`${stopping} stopping`] : []),
    ...(!ends && completed > 0 ? [`${completed} completed`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ];
  return parts.join(", ");
}

/** An update's progress: "1 of 3 updated", "halted at 1 of 3: ..."; empty when none is in progress. */
export function updateWords({ update }: Pick<Job, "update">): string {
  if (update === undefined) return "";
  const far = `${update.done} of ${update.total}`;
  return update.halted ? `halted at ${far}: ${update.message}` : `${far} updated`;
}

/** How an execution ended: "exit code 3", "SIGKILL"; empty while it runs, or if the result is unknown. */
export function endWords(execution: Execution): string {
  const { reason, message } = execution;
  const observation = isEndSeen(reason) ? execution.observation : undefined;
  const said = message === "" ? (observation?.message ?? "") : message;
  const code = observation?.exitCode === undefined ? "" : `exit code ${observation.exitCode}`;
  const end = code === "" ? (observation?.signal ?? "") : code;
  return [...new Set([stateWords(reason), end, said])].filter((part) => part !== "").join(", ");
}

/** The outcome of an execution on one line: "execution 01k... on node n1 failed: exited, exit code 3". */
export function endSentence(execution: Execution): string {
  const { id, nodeId, state } = execution;
  const how = endWords(execution);
  return printable(
    `execution ${id} on node ${nodeId} ${stateWords(executionStateWord(state))}${how === "" ? "" : `: ${how}`}`,
  );
}

/** Why nodes are unsuitable, one line each: "3 of 5 nodes: insufficient cores". */
export function refusalLines(refusals: readonly PlacementRefusal[], total: number | null): readonly string[] {
  return refusals.map(({ nodes, message, reason }) => {
    const of = total === null ? counted(nodes, "node") : `${nodes} of ${counted(total, "node")}`;
    return `${of}: ${message || stateWords(reason)}`;
  });
}

function word(schema: DescEnum, value: number | undefined): string {
  if (value === undefined || value === 0) return "-";
  return schema.value[value]?.localName ?? String(value);
}

/** Whether an execution can have output, because its node has reported that it started. */
export function hasOutput({ observation }: Pick<Execution, "observation">): boolean {
  const { state = ObservedState.UNSPECIFIED } = observation ?? {};
  return state !== ObservedState.UNSPECIFIED && state !== ObservedState.STARTING;
}

/** Whether an execution's state is final. */
export function isEnded({ endTime }: Pick<Execution, "endTime">): boolean {
  return endTime !== undefined;
}

/** An execution's id, or a prefix of it. */
export const EXECUTION_ID = /^[0-9a-z]{8,26}$/;
