import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import {
  JobService,
  PlacementRefusalSchema,
  PlanJobResponseSchema,
  PlannedExecutionSchema,
  type SubmitRefusal,
  SubmitRefusalSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { ExplainedRefusal } from "@rollcall/domain";
import { describeError, type ErrorReasonName, reasonOf } from "@rollcall/errors";
import {
  type AcceptedJob,
  acceptJob,
  checkSubmission,
  type Operation,
  readOperation,
  submitJobIn,
} from "@rollcall/operations";
import { getJob, type StoredJob } from "@rollcall/store";
import { isSameJob, jobToText } from "@rollcall/wire";
import type { SchedulerServices } from "../scheduler-services.ts";
import { checkFit } from "./submit-job.ts";
import { viewJob } from "./view-job.ts";

/** Say what submitting a job would do. */
export function planJob(services: SchedulerServices): MethodImpl<typeof JobService.method.planJob> {
  const { store, nodes } = services;
  const method = JobService.method.planJob;
  return async (request, context) => {
    const { signal } = context;
    const operation = readOperation(services, method, { reason: "", requestId: "" }, context);
    const accepted = acceptJob(request.spec, operation.by.actor);
    const { submitted, spec, warnings } = accepted;
    const before = await getJob(store.db, spec.name);
    const isSame = before !== null && isSameJob(before.spec, jobToText(submitted, spec.count));
    const isOver = before !== null && before.state !== "ACTIVE";
    const viewed = await viewJob(store.db, isOver ? null : before, signal);
    const preview = await nodes.preview(spec, viewed, signal);
    const refusal = await refusalOf(services, accepted, { before, etag: request.etag, operation, signal });
    const version = before?.version ?? 0;
    return create(PlanJobResponseSchema, {
      executions: preview.places.map(({ index, nodeId, executionId, isReplaced }) => {
        // What is the same already is left as it is.
        const replaced = isReplaced && !isSame;
        return create(PlannedExecutionSchema, { index, nodeId, executionId: executionId ?? "", replaced });
      }),
      waiting: preview.waiting,
      refusals: refusalsToProto(preview.refusals),
      nodes: preview.nodes,
      version: isSame ? version : version + 1,
      changed: !(isSame && !isOver && before.count === spec.count),
      warnings: [...warnings],
      ...(refusal === null ? {} : { refusal }),
    });
  };
}

/** What SubmitJob refuses a job for that keeps the rules. */
const REFUSALS: ReadonlySet<ErrorReasonName> = new Set([
  ...(["JOB_FITS_NOWHERE", "ETAG_MISMATCH", "TOO_MANY_JOBS", "QUOTA_EXCEEDED"] as const),
]);

interface PlannedSubmission {
  readonly before: StoredJob | null;
  readonly etag: string;
  readonly operation: Operation;
  readonly signal: AbortSignal;
}

/** Submit a job in a transaction that is rolled back. Throws QUOTA_EXCEEDED, or what changed since it was planned. */
async function tryQuota(
  { store }: SchedulerServices,
  operation: Operation,
  accepted: AcceptedJob,
  etag: string,
): Promise<void> {
  const end = new Error("planned");
  const trying = store.transaction(async (tx) => {
    await submitJobIn(tx, operation, accepted, etag);
    throw end;
  });
  await trying.catch((error: unknown) => {
    if (error !== end) throw error;
  });
}

/** Why SubmitJob would refuse the job, by the checks that it makes itself; null when it would accept it. */
async function refusalOf(
  services: SchedulerServices,
  accepted: AcceptedJob,
  { before, etag, operation, signal }: PlannedSubmission,
): Promise<SubmitRefusal | null> {
  try {
    await checkFit(services, accepted, signal);
    await checkSubmission(services.store.db, before, accepted.spec.name, etag);
    if (operation.quota !== null) await tryQuota(services, operation, accepted, etag);
    return null;
  } catch (error) {
    const reason = reasonOf(error);
    if (reason === undefined || !REFUSALS.has(reason)) throw error;
    return create(SubmitRefusalSchema, { reason: ErrorReason[reason], message: describeError(error).message });
  }
}

/** The public messages of why nodes will not do. */
export function refusalsToProto(refusals: readonly ExplainedRefusal[]) {
  return refusals.map((refusal) => create(PlacementRefusalSchema, refusal));
}
