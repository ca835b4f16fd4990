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
  isSubmitted,
  type Operation,
  readOperation,
  rehearse,
  submitJobIn,
} from "@rollcall/operations";
import { getJob, type JobRow } from "@rollcall/store";
import { jobToText } from "@rollcall/wire";
import type { SchedulerServices } from "../scheduler-services.ts";
import { checkFit } from "./submit-job.ts";
import { viewJob } from "./view-job.ts";

/** Compute what submitting a job would do. */
export function planJob(services: SchedulerServices): MethodImpl<typeof JobService.method.planJob> {
  const { store, nodes } = services;
  const method = JobService.method.planJob;
  return async (request, context) => {
    const { signal } = context;
    const operation = readOperation(services, method, request, context);
    const accepted = acceptJob(request.spec, operation.by.actor);
    const { submitted, spec, warnings } = accepted;
    const before = await getJob(store.db, spec.name);
    const isSame = before !== null && isSubmitted(before, jobToText(submitted, spec.count));
    const isOver = before !== null && before.state !== "ACTIVE";
    const viewed = await viewJob(store.db, isOver ? null : before, signal);
    const preview = await nodes.preview(spec, viewed, signal);
    const refusal = await refusalOf(services, accepted, { before, etag: request.etag, operation, signal });
    const version = before?.version ?? 0;
    return create(PlanJobResponseSchema, {
      executions: preview.places.map(({ index, nodeId, executionId, isReplaced }) => {
        // Report no replacement for an unchanged job, because submitting it replaces nothing.
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

/** Reasons why SubmitJob refuses a valid job. */
const REFUSALS: ReadonlySet<ErrorReasonName> = new Set([
  ...(["JOB_FITS_NOWHERE", "ETAG_MISMATCH", "TOO_MANY_JOBS", "QUOTA_EXCEEDED"] as const),
]);

interface PlannedSubmission {
  readonly before: JobRow | null;
  readonly etag: string;
  readonly operation: Operation;
  readonly signal: AbortSignal;
}

/** Why SubmitJob would refuse the job, according to the same checks; null if it would accept the job. */
async function refusalOf(
  services: SchedulerServices,
  accepted: AcceptedJob,
  { before, etag, operation, signal }: PlannedSubmission,
): Promise<SubmitRefusal | null> {
  try {
    await checkFit(services, accepted, signal);
    await checkSubmission(services.store.db, before, accepted.spec.name, etag);
    // Rehearse the submission, to find whether the quota would be exceeded, or whether the job has changed
    // since it was planned.
    if (operation.quota !== null) await rehearse(services, (tx) => submitJobIn(tx, operation, accepted, etag));
    return null;
  } catch (error) {
    const reason = reasonOf(error);
    if (reason === undefined || !REFUSALS.has(reason)) throw error;
    return create(SubmitRefusalSchema, { reason: ErrorReason[reason], message: describeError(error).message });
  }
}

/** Convert the reasons why nodes do not fit to their public messages. */
export function refusalsToProto(refusals: readonly ExplainedRefusal[]) {
  return refusals.map((refusal) => create(PlacementRefusalSchema, refusal));
}
