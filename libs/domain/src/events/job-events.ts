import type { CommandSource } from "../states.ts";
import type { JobEventType, Json, NewEvent } from "./events.ts";

/** Maximum number of ids in one placement event. */
export const MOST_PLACED_IDS = 200;

/** The actor of events that a scheduler writes. */
export function schedulerActor(instance: string): string {
  return `scheduler:${instance}`;
}

/** The facts about a job that events contain. */
export interface JobFacts {
  readonly state: string;
  readonly version: number;
  readonly count: number;
  /** Why the job's update halted; null if it did not. */
  readonly halted: string | null;
  /** How many nodes should run an ops job or daemon and have no execution of it. */
  readonly waitingNodes: number;
}

/** The event of a submitted job; `before` is null for a new job. */
export function jobSubmittedEvent(change: {
  readonly name: string;
  readonly type: string;
  readonly before: Pick<JobFacts, "state" | "version" | "count"> | null;
  readonly after: Pick<JobFacts, "state" | "version" | "count">;
  readonly by: CommandSource;
  /** JOB_SUBMITTED when absent. */
  readonly reason?: "JOB_SUBMITTED" | "JOB_REVERTED";
}): NewEvent {
  const { name, type, before, after, by, reason = "JOB_SUBMITTED" } = change;
  const factsOf = ({ state, version, count }: Pick<JobFacts, "state" | "version" | "count">) => ({
    state,
    version,
    count,
  });
  return {
    ...{ type: "job.submitted", subject: name, actor: by.actor, reason, message: by.message },
    before: before === null ? null : factsOf(before),
    after: { ...factsOf(after), type },
  };
}

/** Why a job changed. */
export type JobChangeReason =
  | "JOB_SCALED"
  | "JOB_RESTARTED"
  | "JOB_STOPPED"
  | "JOB_COMPLETED"
  | "JOB_FAILED"
  | "JOB_ROLLED_OUT"
  | "JOB_WAITING"
  | "JOB_UPDATED";

/** The event of a changed job, with only the facts that differ. */
export function jobChangedEvent(change: {
  readonly name: string;
  readonly before: JobFacts;
  readonly after: JobFacts;
  readonly reason: JobChangeReason;
  readonly actor: string;
  readonly message: string;
}): NewEvent {
  const { name, before, after, reason, actor, message } = change;
  const differing = CHANGING.filter((field) => before[field] !== after[field]);
  const pick = (facts: JobFacts) => Object.fromEntries(differing.map((field) => [field, facts[field]]));
  return {
    ...{ type: "job.changed", subject: name, actor, reason, message },
    before: pick(before),
    after: pick(after),
  };
}

const CHANGING = ["state", "count", "halted", "waitingNodes"] as const;

/** The event of a deleted job. */
export function jobDeletedEvent(
  name: string,
  { state, version, count }: Pick<JobFacts, "state" | "version" | "count">,
  { actor, message }: CommandSource,
): NewEvent {
  return {
    ...{ type: "job.deleted", subject: name, actor, reason: "JOB_DELETED", message },
    before: { state, version, count },
    after: null,
  };
}

/** The events of executions of one job that were placed in the same commit. */
export function executionsPlacedEvents(job: string, ids: readonly string[], actor: string): readonly NewEvent[] {
  const events: NewEvent[] = [];
  for (let from = 0; from < ids.length; from += MOST_PLACED_IDS) {
    events.push({
      ...{ type: "job.executions.placed", subject: job, actor, reason: "PLACED", message: "" },
      before: null,
      after: { executions: ids.slice(from, from + MOST_PLACED_IDS) },
    });
  }
  return events;
}

/** The event of executions that a node runs and the store does not know. */
export function executionsOrphanedEvent(found: {
  readonly count: number;
  readonly nodes: readonly string[];
  readonly jobs: readonly string[];
  readonly actor: string;
}): NewEvent {
  const { count, nodes, jobs, actor } = found;
  return {
    ...{ type: "job.executions.orphaned", subject: "cluster", actor, reason: "EXECUTIONS_ORPHANED", message: "" },
    before: null,
    after: { count, nodes, jobs },
  };
}

/** The facts about an execution that events contain. */
export interface ExecutionFacts {
  readonly id: string;
  readonly job: string;
  readonly nodeId: string;
  readonly index: number;
  readonly state: string;
}

/** The event of an operator's command for one execution. */
export function executionOrderedEvent(
  execution: ExecutionFacts,
  order: "STOP" | "ADOPT",
  { actor, message }: CommandSource,
): NewEvent {
  return {
    ...{ type: "job.execution.ordered", subject: execution.job, actor, message },
    reason: order === "STOP" ? "STOP_ORDERED" : "ADOPTION_ORDERED",
    before: null,
    after: { execution: execution.id, node: execution.nodeId, order },
  };
}

/** The event of an execution whose state changed. */
export function executionEvent(change: {
  readonly type: Exclude<
    JobEventType,
    | "job.submitted"
    | "job.changed"
    | "job.deleted"
    | "job.executions.placed"
    | "job.executions.orphaned"
    | "job.execution.ordered"
  >;
  readonly before: ExecutionFacts | null;
  readonly after: ExecutionFacts;
  readonly reason: string;
  readonly message: string;
  readonly actor: string;
  readonly replacedBy?: string;
}): NewEvent {
  const { type, before, after, reason, message, actor, replacedBy } = change;
  const facts: Json = { execution: after.id, node: after.nodeId, index: after.index, state: after.state };
  return {
    ...{ type, subject: after.job, actor, reason, message },
    before: before === null ? null : { state: before.state },
    after: replacedBy === undefined ? facts : { ...facts, replacedBy },
  };
}
