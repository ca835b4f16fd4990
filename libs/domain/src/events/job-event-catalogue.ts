import type { EventDescription } from "./cluster-events.ts";
import type { JobEventType } from "./events.ts";

const OPERATORS = ["token:<id>", "user:<subject>"];
const SCHEDULER = ["scheduler:<id>"];
const JOB = "the job's name";
/** Why an execution ends or is replaced. */
const REASONS = [
  ...["EXITED", "SIGNALLED", "OOM", "START_FAILED", "CHECK_FAILED", "DEADLINE_EXCEEDED", "CONTROL_PLANE_LOST"],
  ...["STOPPED_ON_NODE", "NODE_LOST", "GONE", "NODE_DELETED", "NODE_REJECTED", "NODE_DRAINED", "UNCONFIRMED"],
  ...[
    "NODE_LABELS_CHANGED",
    "NODE_CONDITION",
    "JOB_STOPPED",
    "JOB_UPDATED",
    "JOB_RESTARTED",
    "SCALED_DOWN",
    "EXECUTION_STOPPED",
  ],
  ...["ORIGINAL_RETURNED", "DUPLICATE", "NO_ROOM"],
];

/** The events of jobs and their executions: a part of the catalogue. */
export const JOB_EVENTS: Readonly<Record<JobEventType, EventDescription>> = {
  "job.submitted": {
    when:
      "A job was submitted: a new one, a new version, or a stopped one again. The same spec again makes no event. " +
      "JOB_REVERTED: the new version has the specification of an earlier one, at somebody's request or since the " +
      "update halted.",
    subject: JOB,
    actors: [...OPERATORS, ...SCHEDULER],
    before: ["state", "version", "count"],
    after: ["state", "version", "count", "type"],
    reasons: ["JOB_SUBMITTED", "JOB_REVERTED"],
  },
  "job.changed": {
    when:
      "A job was scaled, restarted or stopped, is complete, has failed, or its update halted. halted says " +
      "why the update halted.",
    subject: JOB,
    actors: [...OPERATORS, ...SCHEDULER],
    before: ["state", "count", "halted"],
    after: ["state", "count", "halted"],
    reasons: ["JOB_SCALED", "JOB_RESTARTED", "JOB_STOPPED", "JOB_COMPLETED", "JOB_FAILED", "JOB_UPDATED"],
  },
  "job.deleted": {
    when: "A job that had ended was deleted, with its versions and its executions.",
    subject: JOB,
    actors: OPERATORS,
    before: ["state", "version", "count"],
    after: [],
    reasons: ["JOB_DELETED"],
  },
  "job.executions.placed": {
    when:
      "Executions of a job were placed on nodes: one event for those of a commit, with at most 200 ids. That they " +
      "start, run and become ready makes no event: WatchExecutions shows it.",
    subject: JOB,
    actors: SCHEDULER,
    before: null,
    after: ["executions"],
    reasons: ["PLACED"],
  },
  "job.execution.ordered": {
    when: "An operator wants one execution stopped, or one that the record did not know adopted.",
    subject: JOB,
    actors: OPERATORS,
    before: null,
    after: ["execution", "node", "order"],
    reasons: ["STOP_ORDERED", "ADOPTION_ORDERED"],
  },
  "job.execution.ended": {
    when: "An execution reached a state that is final: COMPLETED, FAILED, STOPPED or KILLED_OOM.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state"],
    reasons: REASONS,
  },
  "job.execution.lost": {
    when: "The node of an execution is lost and reactions are allowed, or two whole reports of its node lack it.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state"],
    reasons: ["NODE_LOST", "GONE"],
  },
  "job.execution.found": {
    when: "An execution that was lost, and not replaced, runs.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state"],
    reasons: ["EXECUTION_FOUND"],
  },
  "job.execution.replaced": {
    when: "Another execution took the place of one: replacedBy.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state", "replacedBy"],
    reasons: REASONS,
  },
  "job.executions.orphaned": {
    when:
      "Nodes run executions that the store does not know, since it was restored or lost: how many, and up to 20 of " +
      "their nodes and jobs. Further ones are summed up: an event when there are as many again, or after a minute.",
    subject: "`cluster`",
    actors: SCHEDULER,
    before: null,
    after: ["count", "nodes", "jobs"],
    reasons: ["EXECUTIONS_ORPHANED"],
  },
  "job.execution.adopted": {
    when: "An execution that the record did not know is one of its job again.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state"],
    reasons: ["EXECUTION_ADOPTED"],
  },
};
