import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  JobService,
  type SubmitJobResponse,
  SubmitJobResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
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
import { fitsNowhere } from "./job-refusals.ts";

/** Make a job, or a new version of it. */
export function submitJob(services: SchedulerServices): MethodImpl<typeof JobService.method.submitJob> {
  const method = JobService.method.submitJob;
  const options = { codec: messageCodec(SubmitJobResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    const accepted = acceptJob(request.spec);
    await checkThatItFits(services, accepted, context.signal);
    return commit(services, operation, options, async (tx) => {
      const { result, ...rest } = await submitJobIn(tx, operation, accepted, request.etag);
      return { ...rest, result: await answer(tx, result, accepted.warnings) };
    });
  };
}

/**
 * One that waits for nodes need not fit. Neither need one that runs and asks for nothing new, since its nodes may come
 * back; nor a daemon that no node matches yet.
 */
async function checkThatItFits(
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
