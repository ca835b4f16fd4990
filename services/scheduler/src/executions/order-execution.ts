import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  AdoptExecutionResponseSchema,
  type Execution,
  JobService,
  StopExecutionResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { executionIdTimeMs, executionOrderedEvent, stateWords } from "@rollcall/domain";
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
  type ExecutionRow,
  executionNotFound,
  getJob,
  lockExecution,
  saveExecutionOrder,
  storeTimeMs,
  type Tx,
} from "@rollcall/store";
import { jobCountIsZero } from "../jobs/submit-job.ts";
import { hasPlaces } from "../jobs/view-job.ts";
import type { SchedulerServices } from "../scheduler-services.ts";
import { executionToProto, isRevived, stateOf } from "./convert-execution.ts";

/** How far the time in an execution's id can be ahead of the store's clock, since two clocks always differ. */
const MOST_AHEAD_MS = 3_600_000;

/** Save the order to stop an execution. */
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

/** Save the order to adopt an orphan: an execution that the store did not know becomes part of its job again. */
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

/** Save an order, which the leader carries out. Repeating an order changes nothing. */
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

async function checkOrder(tx: Tx, found: ExecutionRow, kind: ExecutionOrder): Promise<void> {
  const { id, job, endedAtMs, state } = found.execution;
  if (kind === "ADOPT") {
    if (!found.isOrphan) {
      const text = `execution ${id} is not an orphan; there is nothing to adopt`;
      throw refuse("EXECUTION_NOT_ORPHANED", text, { metadata: { execution: id }, subject: id });
    }
    await checkTime(tx, id);
    const stored = await getJob(tx, job);
    if (stored === null) throw await jobNotFound(tx, job);
    if (stored.state !== "ACTIVE") throw jobStopped(job);
    if (!hasPlaces(stored)) throw jobCountIsZero(job);
  } else if (endedAtMs !== null && !isRevived(found)) {
    const text = `execution ${id} has ended: it is ${stateWords(state)}`;
    throw refuse("EXECUTION_ENDED", text, { metadata: { execution: id, state }, subject: id });
  }
}

/**
 * Check that the time in an execution's id is not in the future. All later ids must be greater, so such an id would
 * break the order of ids by time.
 */
async function checkTime(tx: Tx, id: string): Promise<void> {
  const atMs = executionIdTimeMs(id);
  if (atMs === null || atMs <= (await storeTimeMs(tx)) + MOST_AHEAD_MS) return;
  const time = new Date(atMs).toISOString();
  const text =
    `the time in the id of execution ${id}, ${time}, is in the future; stop the execution, and its job starts ` +
    "another";
  throw refuse("EXECUTION_ID_AHEAD", text, { metadata: { execution: id, time }, subject: id });
}
