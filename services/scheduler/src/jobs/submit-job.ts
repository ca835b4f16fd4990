import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  JobService,
  type SubmitJobResponse,
  SubmitJobResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type JobSpec, type Refusals, refusalsText } from "@rollcall/domain";
import { type RefusalError, refuse } from "@rollcall/errors";
import {
  type AcceptedJob,
  acceptJob,
  commit,
  isSubmitted,
  messageCodec,
  readOperation,
  type SubmittedJob,
  submitJobIn,
} from "@rollcall/operations";
import { getJob, type Tx } from "@rollcall/store";
import { jobToText, recheckedJobOf } from "@rollcall/wire";
import type { SchedulerServices } from "../scheduler-services.ts";
import { countJobExecutions, jobToProto } from "./convert-job.ts";
import { hasPlaces } from "./view-job.ts";

/** Create a job, or a new version of it. */
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
 * Some jobs need not fit:
 * - a job that waits for nodes
 * - a job that wants executions and requests nothing new, because its nodes may come back
 * - a daemon, as long as no node matches it
 * - a job with a count of 0
 */
export async function checkFit(
  services: SchedulerServices,
  { submitted, spec }: AcceptedJob,
  signal: AbortSignal,
): Promise<void> {
  const { store } = services;
  if (spec.queueTimeoutMs !== null || !hasPlaces(spec)) return;
  const before = await getJob(store.db, spec.name);
  const isWanted = before?.state === "ACTIVE" && hasPlaces(before);
  const asksForNothingNew = isWanted && isSubmitted(before, jobToText(submitted, spec.count));
  if (!asksForNothingNew) await checkCouldFit(services, spec, signal);
}

/** Check that a node could run one more execution of an active job. Throws JOB_FITS_NOWHERE. */
export async function checkScale(
  services: SchedulerServices,
  { name, count }: { readonly name: string; readonly count: number },
  signal: AbortSignal,
): Promise<void> {
  const job = await getJob(services.store.db, name);
  // After an update has halted, scaling adds executions of an earlier version.
  if (job === null || job.state !== "ACTIVE" || job.halted !== null || count <= job.count) return;
  const { spec } = recheckedJobOf(job);
  if (spec.queueTimeoutMs === null) await checkCouldFit(services, spec, signal);
}

async function checkCouldFit({ nodes }: SchedulerServices, spec: JobSpec, signal: AbortSignal): Promise<void> {
  const { fits, matching, why } = await nodes.couldFit(spec, signal);
  if (!fits && (spec.type !== "daemon" || matching > 0)) throw fitsNowhere(spec.name, why);
}

async function answer(tx: Tx, { job, changed }: SubmittedJob, warnings: readonly string[]): Promise<SubmitJobResponse> {
  const [counted] = await countJobExecutions(tx, [job]);
  const shown = counted === undefined ? {} : { job: jobToProto(counted) };
  return create(SubmitJobResponseSchema, { ...shown, changed, warnings: [...warnings] });
}

/** The refusal of a job with a count of 0. */
export function jobCountIsZero(name: string): RefusalError {
  const text = `job ${name} has a count of 0, so an adopted execution would be stopped; scale the job first`;
  return refuse("JOB_COUNT_IS_ZERO", text, { metadata: { job: name }, subject: name });
}

/** The refusal of a job that no node fits and that does not wait for one. */
function fitsNowhere(name: string, why: Refusals): RefusalError {
  const metadata = Object.fromEntries(why.counts.map(({ reason, nodes }) => [reason, String(nodes)]));
  const text = `no node fits job ${name}, and it has no queue timeout: ${refusalsText(why)}`;
  return refuse("JOB_FITS_NOWHERE", text, {
    metadata: { job: name, ...metadata },
  });
}
