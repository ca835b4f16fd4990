import { create } from "@bufbuild/protobuf";
import type { ConnectError, MethodImpl } from "@connectrpc/connect";
import {
  JobService,
  type SubmitJobResponse,
  SubmitJobResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type Refusals, refusalsText } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import {
  type AcceptedJob,
  acceptJob,
  commit,
  messageCodec,
  readOperation,
  type SubmittedJob,
  submitJobIn,
} from "@rollcall/operations";
import { getJob, type Tx } from "@rollcall/store";
import { isSameJob, jobToText } from "@rollcall/wire";
import type { SchedulerServices } from "../scheduler-services.ts";
import { countJobExecutions, jobToProto } from "./convert-job.ts";

/** Make a job, or a new version of it. */
export function submitJob(services: SchedulerServices): MethodImpl<typeof JobService.method.submitJob> {
  const method = JobService.method.submitJob;
  const options = { codec: messageCodec(SubmitJobResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    const accepted = acceptJob(request.spec, operation.by.actor);
    await checkFit(services, accepted, context.signal);
    return commit(services, operation, options, async (tx) => {
      const { result, ...rest } = await submitJobIn(tx, operation, accepted, request.etag);
      return { ...rest, result: await answer(tx, result, accepted.warnings) };
    });
  };
}

/**
 * Check that a node could run the job. Throws JOB_FITS_NOWHERE.
 *
 * A job that waits for nodes need not fit. Neither need one that runs and asks for nothing new, since its nodes may
 * come back; nor a daemon that no node matches yet.
 */
export async function checkFit(
  { store, nodes }: SchedulerServices,
  { submitted, spec }: AcceptedJob,
  signal: AbortSignal,
): Promise<void> {
  if (spec.queueTimeoutMs !== null) return;
  const before = await getJob(store.db, spec.name);
  const asksForNothingNew = before?.state === "ACTIVE" && isSameJob(before.spec, jobToText(submitted, spec.count));
  if (asksForNothingNew) return;
  const { fits, matching, why } = await nodes.couldFit(spec, signal);
  if (!fits && (spec.type !== "daemon" || matching > 0)) throw fitsNowhere(spec.name, why);
}

async function answer(tx: Tx, { job, changed }: SubmittedJob, warnings: readonly string[]): Promise<SubmitJobResponse> {
  const [counted] = await countJobExecutions(tx, [job]);
  const shown = counted === undefined ? {} : { job: jobToProto(counted) };
  return create(SubmitJobResponseSchema, { ...shown, changed, warnings: [...warnings] });
}

/** The job wants no executions. */
export function jobCountIsZero(name: string): ConnectError {
  const text = `job ${name} has a count of 0, so that what it adopts would be stopped: scale it first`;
  return refuse("JOB_COUNT_IS_ZERO", text, { metadata: { job: name }, subject: name });
}

/** No node fits a job that does not wait for one. */
function fitsNowhere(name: string, why: Refusals): ConnectError {
  const metadata = Object.fromEntries(why.counts.map(({ reason, nodes }) => [reason, String(nodes)]));
  const text = `no node fits job ${name}, and it has no queue timeout: ${refusalsText(why)}`;
  return refuse("JOB_FITS_NOWHERE", text, {
    metadata: { job: name, ...metadata },
  });
}
