import type { JobEventType } from "../events/events.ts";
import type { EventDescription } from "./cluster-events.ts";

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

/** The part of the catalogue for events about jobs and their executions. */
export const JOB_EVENTS: Readonly<Record<JobEventType, EventDescription>> = {
  "job.submitted": {
    when:
      "A job was submitted: a new job, a new version, or a stopped job again. Submitting an unchanged spec causes no " +
      "event. JOB_REVERTED means that the new version has the specification of an earlier one, because a user asked " +
      "for it or because the update halted.",
    subject: JOB,
    actors: [...OPERATORS, ...SCHEDULER],
    before: ["state", "version", "count"],
    after: ["state", "version", "count", "type"],
    reasons: ["JOB_SUBMITTED", "JOB_REVERTED"],
  },
  "job.changed": {
    when:
      "A job was scaled, restarted or stopped, is complete, has failed, is rolled out, or its update halted. " +
      "halted says why the update halted. JOB_ROLLED_OUT: every wanted execution of a service or daemon was " +
      "ready for min_ready_time. JOB_WAITING: waitingNodes changed, the number of nodes that should run an ops job " +
      "or daemon but have no execution of it, for example because they have no room.",
    subject: JOB,
    actors: [...OPERATORS, ...SCHEDULER],
    before: ["state", "count", "halted", "waitingNodes"],
    after: ["state", "count", "halted", "waitingNodes"],
    reasons: [
      ...["JOB_SCALED", "JOB_RESTARTED", "JOB_STOPPED", "JOB_COMPLETED", "JOB_FAILED", "JOB_UPDATED"],
      ...["JOB_ROLLED_OUT", "JOB_WAITING"],
    ],
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
      "Executions of a job were placed on nodes. There is one event per commit, with at most 200 ids. No event " +
      "is written when an execution starts, runs or becomes ready; WatchExecutions shows that.",
    subject: JOB,
    actors: SCHEDULER,
    before: null,
    after: ["executions"],
    reasons: ["PLACED"],
  },
  "job.execution.ordered": {
    when: "An operator requested that an execution be stopped, or that an execution unknown to the store be adopted.",
    subject: JOB,
    actors: OPERATORS,
    before: null,
    after: ["execution", "node", "order"],
    reasons: ["STOP_ORDERED", "ADOPTION_ORDERED"],
  },
  "job.execution.ended": {
    when: "An execution reached a final state: COMPLETED, FAILED, STOPPED or KILLED_OOM.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state"],
    reasons: REASONS,
  },
  "job.execution.lost": {
    when:
      "The node of an execution is lost and reactions to the loss are allowed, or two complete reports of its node " +
      "did not contain the execution.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state"],
    reasons: ["NODE_LOST", "GONE"],
  },
  "job.execution.found": {
    when: "A lost execution is running again and stays, even if another one had replaced it.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state"],
    reasons: ["EXECUTION_FOUND"],
  },
  "job.execution.replaced": {
    when: "An execution was replaced by another one, named by replacedBy.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state", "replacedBy"],
    reasons: REASONS,
  },
  "job.execution.restored": {
    when:
      "An execution that an update was replacing stays: its replacement " +
      "ended, or it was not ready when the update halted or was undone. The message names the replacement.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state"],
    reasons: ["EXECUTION_RESTORED"],
  },
  "job.executions.orphaned": {
    when:
      "Nodes run executions that the store does not know, because the store was restored or has lost data. The " +
      "event has their number and up to 20 of their nodes and jobs. Executions that are found later are combined " +
      "into one event. It is written after a minute, or as soon as their number equals the number reported before.",
    subject: "`cluster`",
    actors: SCHEDULER,
    before: null,
    after: ["count", "nodes", "jobs"],
    reasons: ["EXECUTIONS_ORPHANED"],
  },
  "job.execution.adopted": {
    when: "An execution that the store did not know belongs to its job again.",
    subject: JOB,
    actors: SCHEDULER,
    before: ["state"],
    after: ["execution", "node", "index", "state"],
    reasons: ["EXECUTION_ADOPTED"],
  },
};
