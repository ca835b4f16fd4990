import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type Job,
  JobService,
  RestartJobResponseSchema,
  ScaleJobResponseSchema,
  StopJobResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { ExecutionIds, type JobChangeReason, type JobFacts, jobChangedEvent } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { auditOf, commit, messageCodec, type Operation, readOperation } from "@rollcall/operations";
import {
  type Change,
  type JobEdit,
  lockJob,
  recordTimeMs,
  type StoredJob,
  saveJobEdit,
  type Tx,
} from "@rollcall/store";
import type { SchedulerServices } from "../scheduler-services.ts";
import { countJobExecutions, jobToProto } from "./convert-job.ts";
import { checkJobEtag, jobNotFound, jobStopped } from "./job-refusals.ts";
import { jobFromText, jobToText } from "./job-text.ts";

/** Change the count of a batch job or service. */
export function scaleJob(services: SchedulerServices): MethodImpl<typeof JobService.method.scaleJob> {
  const method = JobService.method.scaleJob;
  const options = { codec: messageCodec(ScaleJobResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    const { name, count, etag } = request;
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
      // Executions that were placed before this moment are replaced.
      const restartBefore = new ExecutionIds("").next(await recordTimeMs(tx), Math.random);
      const asked = { name: request.name, etag: "", reason: "JOB_RESTARTED" } as const;
      const { result, ...rest } = await edit(tx, operation, asked, () => ({ restartBefore }));
      return { ...rest, result: create(RestartJobResponseSchema, { job: result }) };
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
      const asked = { name: request.name, etag: "", reason: "JOB_STOPPED" } as const;
      const { result, ...rest } = await edit(tx, operation, asked, () => ({ state: "STOPPED" }));
      return { ...rest, result: create(StopJobResponseSchema, { job: result }) };
    });
  };
}

/** Change a job that was not stopped; null of `decide` means that it is so already. */
async function edit(
  tx: Tx,
  operation: Operation,
  { name, etag, reason }: { readonly name: string; readonly etag: string; readonly reason: JobChangeReason },
  decide: (job: StoredJob) => JobEdit | null,
): Promise<Change<Job>> {
  const before = await lockJob(tx, name);
  if (before === null) throw jobNotFound(name);
  checkJobEtag(before, name, etag);
  if (before.state === "STOPPED") throw jobStopped(name);
  const wanted = decide(before);
  const after = wanted === null ? before : await saveJobEdit(tx, name, wanted);
  const { actor, message } = operation.by;
  const facts = { name, before: factsOf(before), after: factsOf(after), reason, actor, message };
  return {
    result: await shown(tx, after),
    events: wanted === null ? [] : [jobChangedEvent(facts)],
    audit: [auditOf(operation, name)],
  };
}

function factsOf({ state, version, count, halted }: StoredJob): JobFacts {
  return { state, version, count, halted };
}

async function shown(tx: Tx, job: StoredJob): Promise<Job> {
  const [counted] = await countJobExecutions(tx, [job]);
  if (counted === undefined) throw new Error("a job was not counted");
  return jobToProto(counted);
}

function hasNoCount({ name, type }: StoredJob) {
  const text = `job ${name} is of type ${type}: it runs once on every matching node and has no count`;
  return refuse("JOB_HAS_NO_COUNT", text, { metadata: { job: name, type }, subject: name });
}
