import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  DeleteJobResponseSchema,
  type Job,
  JobService,
  RestartJobResponseSchema,
  RevertJobResponseSchema,
  ScaleJobResponseSchema,
  StopJobResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { refusesRestart } from "@rollcall/domain";
import { reasonOf, refuse } from "@rollcall/errors";
import {
  commit,
  decideRevertIn,
  deleteJobIn,
  editJobIn,
  type JobOrder,
  jobUpdateHalted,
  messageCodec,
  type Operation,
  readOperation,
  revertJobIn,
  stopJobIn,
} from "@rollcall/operations";
import { type Change, getJob, type JobEdit, type JobRow, type Tx } from "@rollcall/store";
import { jobFromText, jobToText } from "@rollcall/wire";
import type { SchedulerServices } from "../scheduler-services.ts";
import { countJobExecutions, jobToProto } from "./convert-job.ts";
import { checkFit, checkScale } from "./submit-job.ts";

/** Change the count of a batch job or service. */
export function scaleJob(services: SchedulerServices): MethodImpl<typeof JobService.method.scaleJob> {
  const method = JobService.method.scaleJob;
  const options = { codec: messageCodec(ScaleJobResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    const { name, count, etag } = request;
    await checkScale(services, { name, count }, context.signal);
    return commit(services, operation, options, async (tx) => {
      const { result, ...rest } = await edit(tx, operation, { name, etag, reason: "JOB_SCALED" }, (job) => {
        if (job.type !== "batch" && job.type !== "service") throw hasNoCount(job);
        return count === job.count ? null : { count, spec: jobToText(jobFromText(job.spec), count) };
      });
      return { ...rest, result: create(ScaleJobResponseSchema, { job: result }) };
    });
  };
}

/** Replace each execution of a service or daemon. */
export function restartJob(services: SchedulerServices): MethodImpl<typeof JobService.method.restartJob> {
  const method = JobService.method.restartJob;
  const options = { codec: messageCodec(RestartJobResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    return commit(services, operation, options, async (tx) => {
      const asked = { name: request.name, etag: "", reason: "JOB_RESTARTED" } as const;
      const { result, ...rest } = await edit(tx, operation, asked, (job) => {
        if (refusesRestart(job)) throw jobUpdateHalted(job);
        return { isNewRun: true };
      });
      return { ...rest, result: create(RestartJobResponseSchema, { job: result }) };
    });
  };
}

/** Create a new version of a job with the specification of an earlier one. */
export function revertJob(services: SchedulerServices): MethodImpl<typeof JobService.method.revertJob> {
  const method = JobService.method.revertJob;
  const options = { codec: messageCodec(RevertJobResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    const { name, etag, version } = request;
    const order = { name, etag, version: version === 0 ? null : version };
    // Check the revert before anything is locked, because nodes may have to be read. Ignore refusals here: the
    // transaction checks again, or returns the stored response if the request was already carried out.
    const planned = await decideRevertIn(services.store.db, order).catch(nullIfRefused);
    if (planned !== null) await checkFit(services, planned, context.signal);
    return commit(services, operation, options, async (tx) => {
      const { result, ...rest } = await revertJobIn(tx, operation, order);
      const { job, revertedTo } = result;
      return { ...rest, result: create(RevertJobResponseSchema, { job: await shown(tx, job), revertedTo }) };
    });
  };
}

/** End all executions of a job. */
export function stopJob(services: SchedulerServices): MethodImpl<typeof JobService.method.stopJob> {
  const method = JobService.method.stopJob;
  const options = { codec: messageCodec(StopJobResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    return commit(services, operation, options, async (tx) => {
      const { result, ...rest } = await stopJobIn(tx, operation, request.name);
      return { ...rest, result: create(StopJobResponseSchema, { job: await shown(tx, result) }) };
    });
  };
}

/** Delete a job that has ended. */
export function deleteJob(services: SchedulerServices): MethodImpl<typeof JobService.method.deleteJob> {
  const method = JobService.method.deleteJob;
  const options = { codec: messageCodec(DeleteJobResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    return commit(services, operation, options, async (tx) => {
      // Count the executions before they are deleted with the job.
      const before = await getJob(tx, request.name);
      const job = before === null ? undefined : await shown(tx, before);
      const { result: _, ...rest } = await deleteJobIn(tx, operation, request);
      return { ...rest, result: create(DeleteJobResponseSchema, job === undefined ? {} : { job }) };
    });
  };
}

function nullIfRefused(error: unknown): null {
  if (reasonOf(error) === undefined) throw error;
  return null;
}

async function edit(
  tx: Tx,
  operation: Operation,
  order: JobOrder,
  decide: (job: JobRow) => JobEdit | null,
): Promise<Change<Job>> {
  const { result, ...rest } = await editJobIn(tx, operation, order, decide);
  return { ...rest, result: await shown(tx, result) };
}

async function shown(tx: Tx, job: JobRow): Promise<Job> {
  const [counted] = await countJobExecutions(tx, [job]);
  if (counted === undefined) throw new Error("a job has no execution counts");
  return jobToProto(counted);
}

function hasNoCount({ name, type }: JobRow) {
  const text = `job ${name} has type ${type}: it runs once on every matching node and has no count`;
  return refuse("JOB_HAS_NO_COUNT", text, { metadata: { job: name, type }, subject: name });
}
