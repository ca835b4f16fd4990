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
import { isEndSeen } from "@rollcall/domain";
import type { EXECUTION_STATE_WORDS, JOB_STATE_WORDS, JOB_TYPE_WORDS } from "../choices.ts";
import { printable } from "../output/text.ts";

// The enums of the API are open: a newer server may send a value that this program does not know. It is shown as its
// number.

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

/** Whether the job is finished at some point, as batch and ops jobs are; services and daemons are kept running. */
export function runsToCompletion({ spec }: Pick<Job, "spec">): boolean {
  return spec?.type === JobType.BATCH || spec?.type === JobType.OPS;
}

/** How far a job is, in a few words: "2 of 3 ready, 1 waiting", or "1 of 3 completed, 2 running". */
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
  // A check makes executions of a job that ends ready, too; what counts is that they complete.
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

/** How far an update is: "1 of 3 updated", "halted at 1 of 3: ..."; empty when none goes on. */
export function updateWords({ update }: Pick<Job, "update">): string {
  if (update === undefined) return "";
  const far = `${update.done} of ${update.total}`;
  return update.halted ? `halted at ${far}: ${update.message}` : `${far} updated`;
}

/** How an execution ended: "exit code 3", "SIGKILL"; empty for one that runs, or of which that is not known. */
export function endWords(execution: Execution): string {
  const { reason, message } = execution;
  const observation = isEndSeen(reason) ? execution.observation : undefined;
  const said = message === "" ? (observation?.message ?? "") : message;
  const code = observation?.exitCode === undefined ? "" : `exit code ${observation.exitCode}`;
  const end = code === "" ? (observation?.signal ?? "") : code;
  return [...new Set([reason, end, said])].filter((part) => part !== "").join(", ");
}

/** What became of an execution, on a line: "execution 01k... on node n1 FAILED: EXITED, exit code 3". */
export function endSentence(execution: Execution): string {
  const { id, nodeId, state } = execution;
  const how = endWords(execution);
  return printable(`execution ${id} on node ${nodeId} ${executionStateWord(state)}${how === "" ? "" : `: ${how}`}`);
}

/** Why nodes will not do, a line each: "3 of 5 nodes: insufficient cores". */
export function refusalLines(refusals: readonly PlacementRefusal[], total: number | null): readonly string[] {
  return refusals.map(({ nodes, message, reason }) => {
    const of = total === null ? `${nodes} node${nodes === 1 ? "" : "s"}` : `${nodes} of ${total} nodes`;
    return `${of}: ${message || reason}`;
  });
}

function word(schema: DescEnum, value: number | undefined): string {
  if (value === undefined || value === 0) return "-";
  return schema.value[value]?.localName ?? String(value);
}

/** Whether its node has reported that it started, so that there may be output of it. */
export function hasOutput({ observation }: Pick<Execution, "observation">): boolean {
  const { state = ObservedState.UNSPECIFIED } = observation ?? {};
  return state !== ObservedState.UNSPECIFIED && state !== ObservedState.STARTING;
}

/** Whether it is in a state that is final. */
export function isEnded({ endTime }: Pick<Execution, "endTime">): boolean {
  return endTime !== undefined;
}

/** An execution's id, or enough of it. */
export const EXECUTION_ID = /^[0-9a-z]{8,26}$/;
