import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  AdoptExecutionResponseSchema,
  type Execution,
  JobService,
  StopExecutionResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { executionIdTimeMs, executionOrderedEvent } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import {
  auditOf,
  commit,
  jobNotFound,
  jobStopped,
  messageCodec,
  type Operation,
  readOperation,
} from "@rollcall/operations";
import {
  type Change,
  type ExecutionOrder,
  executionNotFound,
  getJob,
  lockExecution,
  recordTimeMs,
  type StoredExecution,
  saveExecutionOrder,
  type Tx,
} from "@rollcall/store";
import { jobCountIsZero } from "../jobs/submit-job.ts";
import { hasPlaces } from "../jobs/view-job.ts";
import type { SchedulerServices } from "../scheduler-services.ts";
import { executionToProto, isRevived, stateOf } from "./convert-execution.ts";

/** How far the time in an execution's id may be ahead of the record's clock: two clocks are never the same. */
const MOST_AHEAD_MS = 3_600_000;

/** Have one execution stopped. */
export function stopExecution(services: SchedulerServices): MethodImpl<typeof JobService.method.stopExecution> {
  const method = JobService.method.stopExecution;
  const options = { codec: messageCodec(StopExecutionResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    return commit(services, operation, options, async (tx) => {
      const { result, ...rest } = await order(tx, operation, request.execution, "STOP");
      return { ...rest, result: create(StopExecutionResponseSchema, { execution: result }) };
    });
  };
}

/** Have an execution that the record did not know made its job's own again. */
export function adoptExecution(services: SchedulerServices): MethodImpl<typeof JobService.method.adoptExecution> {
  const method = JobService.method.adoptExecution;
  const options = { codec: messageCodec(AdoptExecutionResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    return commit(services, operation, options, async (tx) => {
      const { result, ...rest } = await order(tx, operation, request.execution, "ADOPT");
      return { ...rest, result: create(AdoptExecutionResponseSchema, { execution: result }) };
    });
  };
}

/** Keep what is wanted; the leader sees to it. The same order again changes nothing. */
async function order(tx: Tx, operation: Operation, id: string, kind: ExecutionOrder): Promise<Change<Execution>> {
  const found = await lockExecution(tx, id);
  if (found === null) throw await executionNotFound(tx, id);
  const { execution } = found;
  await checkOrder(tx, found, kind);
  const audit = [auditOf(operation, execution.id)];
  const isSo = found.order?.kind === kind || (kind === "STOP" && execution.desired !== "RUN");
  if (isSo) return { result: executionToProto(found), events: [], audit };
  const { actor, message } = operation.by;
  await saveExecutionOrder(tx, execution.id, { kind, actor, message });
  const facts = { ...execution, state: stateOf(found) };
  return {
    result: executionToProto({ ...found, order: { kind, actor, message } }),
    events: [executionOrderedEvent(facts, kind, operation.by)],
    audit,
  };
}

async function checkOrder(tx: Tx, found: StoredExecution, kind: ExecutionOrder): Promise<void> {
  const { id, job, endedAtMs, state } = found.execution;
  if (kind === "ADOPT") {
    if (!found.isOrphan) {
      const text = `the record knows execution ${id}: there is nothing to adopt`;
      throw refuse("EXECUTION_NOT_ORPHANED", text, { metadata: { execution: id }, subject: id });
    }
    await checkTime(tx, id);
    const stored = await getJob(tx, job);
    if (stored === null) throw await jobNotFound(tx, job);
    if (stored.state !== "ACTIVE") throw jobStopped(job);
    if (!hasPlaces(stored)) throw jobCountIsZero(job);
  } else if (endedAtMs !== null && !isRevived(found)) {
    const text = `execution ${id} has ended: it is ${state}`;
    throw refuse("EXECUTION_ENDED", text, { metadata: { execution: id, state }, subject: id });
  }
}

/** All ids that are made later are greater: one from the future would take the order of time from them. */
async function checkTime(tx: Tx, id: string): Promise<void> {
  const atMs = executionIdTimeMs(id);
  if (atMs === null || atMs <= (await recordTimeMs(tx)) + MOST_AHEAD_MS) return;
  const time = new Date(atMs).toISOString();
  const text = `the id of execution ${id} is of ${time}, which is still to come: stop it, and its job starts another`;
  throw refuse("EXECUTION_ID_AHEAD", text, { metadata: { execution: id, time }, subject: id });
}
