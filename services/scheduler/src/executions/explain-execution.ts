import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  ExecutionHistoryEntrySchema,
  type ExplainExecutionResponse,
  ExplainExecutionResponseSchema,
  type JobService,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { explainEvent, isTerminal, type Json, stateWords } from "@rollcall/domain";
import { jobNotFound } from "@rollcall/operations";
import {
  type Db,
  type EventRow,
  type ExecutionRow,
  findNode,
  getJob,
  getJobs,
  readExecutions,
  readJobsWaitingOnNodes,
  readLatestEvents,
  storeTimeMs,
} from "@rollcall/store";
import { messageOf } from "../jobs/convert-job.ts";
import { refusalsToProto } from "../jobs/plan-job.ts";
import { hasPlaces, viewJob } from "../jobs/view-job.ts";
import type { SchedulerServices } from "../scheduler-services.ts";
import { isRevived, REVIVED, stateOf } from "./convert-execution.ts";
import { findExecution } from "./read-executions.ts";
import { readWaits, waitingText, waitToProto } from "./read-waits.ts";

const MOST_ENTRIES = 50;
/** Maximum number of a node's executions to explain, newest first, and maximum number of their jobs to explain. */
const MOST_ON_NODE = 5_000;
const MOST_JOBS = 20;
const JOB_EVENTS = [
  "job.submitted",
  "job.changed",
  "job.execution.ordered",
  "job.execution.ended",
  "job.execution.lost",
  "job.execution.found",
  "job.execution.replaced",
  "job.execution.restored",
  "job.execution.adopted",
] as const;

/** Explain the state of an execution, or what a job waits for. */
export function explainExecution(services: SchedulerServices): MethodImpl<typeof JobService.method.explainExecution> {
  return async ({ subject, allowPrefix }, { signal }) => {
    if (subject.case === "job") return explainJob(services, subject.value, signal);
    if (subject.case === "node") return explainNode(services, subject.value, signal);
    return explainOne(services, await findExecution(services.store.db, subject.value ?? "", allowPrefix), signal);
  };
}

async function explainOne(
  services: SchedulerServices,
  found: ExecutionRow,
  signal: AbortSignal,
): Promise<ExplainExecutionResponse> {
  const { store } = services;
  const { execution, observation } = found;
  const { id, job, nodeId, index } = execution;
  const events = await readLatestEvents(store.db, {
    ...{ subject: job, types: JOB_EVENTS, limit: MOST_ENTRIES * 10, before: null },
  });
  const own = events.filter((event) => executionIn(event.after) === id).slice(0, MOST_ENTRIES);
  const entry = (atMs: number, text: string) => ({ atMs, text, executionId: id, nodeId });
  const history = [
    entry(execution.createdAtMs, `placed on ${nodeId} as replica ${index} of job ${job}`),
    ...(observation?.startedAtMs == null ? [] : [entry(observation.startedAtMs, "started, by its node's clock")]),
    // Add events oldest first, because several can have the same time and the sort below keeps their order.
    ...[...own].reverse().map((event) => entry(event.atMs, explainEvent(event))),
  ];
  history.sort((one, other) => one.atMs - other.atMs);
  const jobs = await getJobs(store.db, [job]);
  const waits = await readWaits(services, { jobs, found: [found], executionId: id, nodeId: null }, signal);
  return create(ExplainExecutionResponseSchema, {
    summary: summaryOf(found),
    history: history.map(({ atMs, ...one }) =>
      create(ExecutionHistoryEntrySchema, { ...one, time: timestampFromMs(atMs) }),
    ),
    waits: waits.map(waitToProto),
  });
}

function summaryOf(found: ExecutionRow): string {
  const { execution, observation, order } = found;
  const { id, nodeId, reason, message, desired, replacedBy } = execution;
  const why = [stateWords(reason), isRevived(found) ? REVIVED : message].filter((part) => part !== "").join(", ");
  const parts = [
    `${id} is ${stateWords(stateOf(found))} on ${nodeId}${why === "" ? "" : `: ${why}`}`,
    ...(desired === "STOP" && execution.endedAtMs === null ? ["it was asked to stop"] : []),
    ...(order === null ? [] : [`an operator ordered it to be ${order.kind === "STOP" ? "stopped" : "adopted"}`]),
    ...(replacedBy === null ? [] : [`it was replaced by ${replacedBy}`]),
    ...(observation === null && execution.endedAtMs === null ? ["its node has not reported it yet"] : []),
  ];
  return parts.join("; ");
}

/** Explain which executions on a node wait, move or are lost. */
async function explainNode(
  services: SchedulerServices,
  node: string,
  signal: AbortSignal,
): Promise<ExplainExecutionResponse> {
  const { db } = services.store;
  const { id } = await findNode(db, node);
  const here = await readLiveOnNode(db, id);
  const names = [...new Set(here.map(({ execution }) => execution.job))];
  const jobs = await getJobs(db, names.slice(0, MOST_JOBS));
  const elsewhere = await readJobsWaitingOnNodes(db, MOST_JOBS);
  const vacantJobs = elsewhere.filter(({ name }) => !names.includes(name));
  const waits = await readWaits(services, { jobs, vacantJobs, found: here, executionId: null, nodeId: id }, signal);
  const left = names.length - MOST_JOBS;
  const parts = [
    `node ${id} has ${here.length} execution${here.length === 1 ? "" : "s"}`,
    ...toList(waitingText(waits)),
    ...(left > 0 ? [`${left} more of its jobs are not explained`] : []),
  ];
  return create(ExplainExecutionResponseSchema, { summary: parts.join("; "), waits: waits.map(waitToProto) });
}

/** The executions on a node that have not ended or still hold resources. */
async function readLiveOnNode(db: Db, nodeId: string): Promise<readonly ExecutionRow[]> {
  const found = await readExecutions(db, { below: null, limit: MOST_ON_NODE, filter: { nodeId } });
  return found.filter(({ execution, isOrphan }) => isOrphan || !isTerminal(execution.state) || execution.holds);
}

async function explainJob(
  services: SchedulerServices,
  name: string,
  signal: AbortSignal,
): Promise<ExplainExecutionResponse> {
  const { store, nodes } = services;
  const job = await getJob(store.db, name);
  if (job === null) throw await jobNotFound(store.db, name);
  const events = await readJobHistory(store.db, name);
  const viewed = await viewJob(store.db, job, signal);
  const why = viewed.job === null ? null : await nodes.explain(viewed, await storeTimeMs(store.db), signal);
  const waits = await readWaits(services, { jobs: [job], found: null, executionId: null, nodeId: null }, signal);
  const newest = await readExecutions(store.db, { below: null, limit: 1, filter: { job: name } });
  const waiting = job.state === "ACTIVE" ? (why?.waiting ?? 0) : 0;
  const nextTryAtMs = why?.nextTryAtMs ?? null;
  const message = messageOf(job);
  const parts = [
    `job ${name} is ${stateWords(job.state)}${message === "" ? "" : `: ${message}`}`,
    ...toList(waitingText(waits)),
    ...(hasPlaces(job) ? [] : [`its count is 0, so nothing runs: \`rollcall job scale ${name} 1\` changes that`]),
    ...(newest.length === 0 && hasPlaces(job) ? ["none of its executions has been placed"] : []),
  ];
  return create(ExplainExecutionResponseSchema, {
    summary: parts.join("; "),
    history: [...events].reverse().map((event) => historyEntry(event)),
    refusals: waiting > 0 && why !== null ? refusalsToProto(why.refusals) : [],
    ...(nextTryAtMs === null ? {} : { nextTryTime: timestampFromMs(nextTryAtMs) }),
    waits: waits.map(waitToProto),
  });
}

/** The newest events of a job, newest first, without those of deleted jobs with the same name. */
async function readJobHistory(db: Db, name: string): Promise<readonly EventRow[]> {
  const types = [...JOB_EVENTS, "job.deleted"] as const;
  const events = await readLatestEvents(db, { subject: name, types, limit: MOST_ENTRIES, before: null });
  const deletion = events.findIndex(({ type }) => type === "job.deleted");
  return deletion < 0 ? events : events.slice(0, deletion);
}

function toList(text: string | null): readonly string[] {
  return text === null ? [] : [text];
}

function historyEntry(event: EventRow) {
  const time = timestampFromMs(event.atMs);
  const executionId = executionIn(event.after) ?? "";
  return create(ExecutionHistoryEntrySchema, { time, text: explainEvent(event), executionId });
}

function executionIn(after: Json | null): string | null {
  const facts = after as { readonly execution?: unknown } | null;
  return typeof facts?.execution === "string" ? facts.execution : null;
}
