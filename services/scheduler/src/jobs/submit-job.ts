import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  JobService,
  type SubmitJobRequest,
  type SubmitJobResponse,
  SubmitJobResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type CheckedJob, checkJob, ExecutionIds, jobSubmittedEvent } from "@rollcall/domain";
import { auditOf, commit, messageCodec, type Operation, readOperation } from "@rollcall/operations";
import {
  type Change,
  countJobs,
  getJob,
  lockJob,
  lockJobName,
  recordTimeMs,
  type StoredJob,
  saveJobEdit,
  saveJobVersion,
  saveSpec,
  type Tx,
} from "@rollcall/store";
import type { SchedulerServices } from "../scheduler-services.ts";
import { countJobExecutions, jobToProto } from "./convert-job.ts";
import { toJobDraft } from "./job-draft.ts";
import { checkJobEtag, fitsNowhere, invalidJob, MOST_JOBS, tooManyJobs } from "./job-refusals.ts";
import { executionSpecOf, isSameJob, jobToText } from "./job-text.ts";

type Accepted = Extract<CheckedJob, { readonly ok: true }>;

/** Make a job, or a new version of it. */
export function submitJob(services: SchedulerServices): MethodImpl<typeof JobService.method.submitJob> {
  const method = JobService.method.submitJob;
  const options = { codec: messageCodec(SubmitJobResponseSchema) };
  return async (request, context) => {
    const operation = readOperation(services, method, request, context);
    const checked = acceptJob(request.spec);
    await checkThatItFits(services, request.spec, checked, context.signal);
    return commit(services, operation, options, (tx) => submit(tx, operation, request, checked));
  };
}

/** Check a job. Throws INVALID_JOB with all that is wrong. */
export function acceptJob(spec: SubmitJobRequest["spec"]): Accepted {
  if (spec === undefined) throw invalidJob([{ field: "", message: "is required" }]);
  const checked = checkJob(toJobDraft(spec));
  if (!checked.ok) throw invalidJob(checked.violations);
  return checked;
}

/**
 * One that waits for nodes need not fit. Neither need one that runs and asks for nothing new, since its nodes may come
 * back; nor a daemon that no node matches yet.
 */
async function checkThatItFits(
  { store, nodes }: SchedulerServices,
  submitted: SubmitJobRequest["spec"],
  { spec }: Accepted,
  signal: AbortSignal,
): Promise<void> {
  if (spec.queueTimeoutMs !== null || submitted === undefined) return;
  const before = await getJob(store.db, spec.name);
  const asksForNothingNew = before?.state === "ACTIVE" && isSameJob(before.spec, jobToText(submitted, spec.count));
  if (asksForNothingNew) return;
  const { fits, matching, why } = await nodes.couldFit(spec, signal);
  if (!fits && (spec.type !== "daemon" || matching > 0)) throw fitsNowhere(spec.name, why);
}

async function submit(
  tx: Tx,
  operation: Operation,
  { spec: submitted, etag, reason }: SubmitJobRequest,
  { spec, warnings }: Accepted,
): Promise<Change<SubmitJobResponse>> {
  if (submitted === undefined) throw new Error("a job without a spec was accepted");
  const { name } = spec;
  await lockJobName(tx, name);
  const before = await lockJob(tx, name);
  checkJobEtag(before, name, etag);
  if (before === null && (await countJobs(tx)) >= MOST_JOBS) throw tooManyJobs();
  const text = jobToText(submitted, spec.count);
  const isSame = before !== null && isSameJob(before.spec, text);
  const isOver = before !== null && before.state !== "ACTIVE";
  if (isSame && !isOver && before.count === spec.count) {
    return { result: await answer(tx, before, false, warnings), events: [], audit: [auditOf(operation, name)] };
  }
  // An earlier run of a job that is over counts no more.
  const restart = isOver ? { restartBefore: new ExecutionIds("").next(await recordTimeMs(tx), Math.random) } : {};
  const actor = operation.by.actor;
  let after: StoredJob;
  if (isSame) {
    after = await saveJobEdit(tx, name, { ...restart, count: spec.count, spec: text, state: "ACTIVE" });
  } else {
    const version = (before?.version ?? 0) + 1;
    const { digest, bytes } = executionSpecOf(submitted, version);
    await saveSpec(tx, digest, bytes);
    const { type, count } = spec;
    const made = { name, type, version, count, spec: text, specDigest: digest, actor, reason };
    after = await saveJobVersion(tx, { ...made, ...restart });
  }
  const event = jobSubmittedEvent({ name, type: spec.type, before, after, by: operation.by });
  return {
    result: await answer(tx, after, true, warnings),
    events: [event],
    audit: [auditOf(operation, name)],
  };
}

async function answer(
  tx: Tx,
  job: StoredJob,
  changed: boolean,
  warnings: readonly string[],
): Promise<SubmitJobResponse> {
  const [counted] = await countJobExecutions(tx, [job]);
  const shown = counted === undefined ? {} : { job: jobToProto(counted) };
  return create(SubmitJobResponseSchema, { ...shown, changed, warnings: [...warnings] });
}
