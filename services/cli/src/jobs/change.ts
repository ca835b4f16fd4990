import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import {
  AdoptExecutionResponseSchema,
  DeleteJobResponseSchema,
  type Job,
  JobService,
  RestartJobResponseSchema,
  RevertJobResponseSchema,
  type ScaleJobResponse,
  ScaleJobResponseSchema,
  StopExecutionResponseSchema,
  StopJobResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { alreadyDone, JOB_HAS_SPECIFICATION, JOB_IS_STOPPED } from "../client/already-done.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { parseCount, UsageError } from "../failure.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { CHANGE_FORMATS, type Change, writeChange } from "../output/change.ts";
import { confirm } from "../output/confirm.ts";
import { outputFormat } from "../output/format.ts";
import { printable } from "../output/text.ts";
import { followJobs } from "./follow.ts";

/** The options of the verbs that change jobs. */
export interface JobChangeOptions {
  readonly message?: string;
  readonly requestId?: string;
  readonly etag?: string;
  readonly strict?: boolean;
  readonly yes?: boolean;
  /** One execution, for `job stop`. */
  readonly execution?: string;
  /** Whether to only validate, for `job stop` and `job delete`. */
  readonly dryRun?: boolean;
}

/** `job stop JOB`: stop a job, or one execution of it. */
export const stopOne: Verb<JobChangeOptions> = async (invocation) => {
  const { execution, dryRun = false } = invocation.options;
  const [name] = invocation.args;
  if ((name === undefined) === (execution === undefined)) {
    throw new UsageError("name the job, or pass one execution with --execution");
  }
  if (execution !== undefined) {
    const words = { object: execution, result: dryRun ? "would stop" : "is stopping" };
    await change(invocation, ["stop execution", words], StopExecutionResponseSchema, (client, by) =>
      client.stopExecution({ execution, validateOnly: dryRun, ...by }),
    );
    return;
  }
  const words = { object: name ?? "", result: "is stopping" };
  await change(invocation, ["stop job", words], StopJobResponseSchema, (client, by) =>
    client.stopJob({ name: words.object, ...by }),
  );
};

/** `job delete JOB`: delete a job that has ended. */
export const deleteOne: Verb<JobChangeOptions> = async (invocation) => {
  const [name = ""] = invocation.args;
  const { etag = "" } = invocation.options;
  await confirm(invocation.shell, invocation.options, `delete job ${name}, with its versions and history`);
  await change(invocation, ["delete job", { object: name, result: "deleted" }], DeleteJobResponseSchema, (client, by) =>
    client.deleteJob({ name, etag, ...by }),
  );
};

/** `job scale JOB COUNT`: change how many executions a job wants. */
export const jobScale: Verb<JobChangeOptions> = async (invocation) => {
  const [name = "", text = ""] = invocation.args;
  const count = parseCount("count", text, 0);
  const { etag = "" } = invocation.options;
  const words = { object: name, result: `scaled to ${count}` };
  let before: Job | undefined;
  const isSame = ({ job }: ScaleJobResponse) => before !== undefined && job?.etag === before.etag;
  const already = { isAlready: isSame, result: `already has a count of ${count}` };
  await change(
    invocation,
    ["scale job", words],
    ScaleJobResponseSchema,
    async (client, by) => {
      // Ignore the job's state for a repeated request, because the first request has already changed the job.
      if (by.requestId === "") before = (await client.getJob({ name })).job;
      return client.scaleJob({ name, count, etag, ...by });
    },
    already,
  );
};

/** `job restart JOB`: replace all executions of a job. */
export const jobRestart: Verb<JobChangeOptions> = async (invocation) => {
  const [name = ""] = invocation.args;
  await change(
    invocation,
    ["restart job", { object: name, result: "is restarting" }],
    RestartJobResponseSchema,
    (client, by) => client.restartJob({ name, ...by }),
  );
};

/** `job adopt EXECUTION`: return an orphaned execution to its job. */
export const jobAdopt: Verb<JobChangeOptions> = async (invocation) => {
  const [execution = ""] = invocation.args;
  const words = { object: execution, result: "adopted" };
  await change(invocation, ["adopt execution", words], AdoptExecutionResponseSchema, (client, by) =>
    client.adoptExecution({ execution, ...by }),
  );
};

/** The options of `job revert`. */
export interface JobRevertOptions {
  readonly message?: string;
  readonly requestId?: string;
  readonly etag?: string;
  readonly detach?: boolean;
  readonly strict?: boolean;
}

/** `job revert JOB [VERSION]`: give a job the specification of an earlier version, and follow it until it is ready. */
export const jobRevert: Verb<JobRevertOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, CHANGE_FORMATS);
  const [name = "", text] = args;
  const version = text === undefined ? 0 : parseCount("version", text, 1);
  const { message: reason = "", requestId = "", etag = "", detach = false, strict = false } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  const answer = await control.attempt("scheduler", `revert job ${name}`, () =>
    alreadyDone(shell, { strict, format, alsoDone: JOB_HAS_SPECIFICATION }, () =>
      client.revertJob({ name, version, reason, requestId, etag }),
    ),
  );
  if (answer === null) return;
  const { job, revertedTo } = answer;
  const made = job?.version ?? 0;
  const result = `reverted to version ${revertedTo}, as version ${made}`;
  await writeChange(shell, format, [RevertJobResponseSchema, answer], { object: name, result });
  if (detach) return;
  // For scripts, print only the response on standard output, and the progress on standard error.
  const followed = format === "table" ? shell : { ...shell, out: shell.err };
  await followJobs(followed, control, client, [{ name, version: made }]);
};

/** Make a change, and print its result or the response. `what` is the verb with the kind of the object. */
async function change<Desc extends DescMessage>(
  { shell, options }: Invocation<JobChangeOptions>,
  [what, words]: readonly [what: string, words: Change],
  schema: Desc,
  call: (
    client: Client<typeof JobService>,
    by: { readonly reason: string; readonly requestId: string },
  ) => Promise<MessageShape<Desc>>,
  already: { isAlready(answer: MessageShape<Desc>): boolean; readonly result: string } | null = null,
): Promise<void> {
  const format = outputFormat(options, CHANGE_FORMATS);
  const { message: reason = "", requestId = "", strict = false } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  const alsoDone = what.startsWith("stop ") ? { alsoDone: JOB_IS_STOPPED } : {};
  const answer = await control.attempt("scheduler", `${what} ${words.object}`, () =>
    alreadyDone(shell, { strict, format, ...alsoDone }, () => call(client, { reason, requestId })),
  );
  if (answer === null) return;
  const isAlready = already?.isAlready(answer) === true;
  const result = isAlready ? (already?.result ?? words.result) : words.result;
  if (isAlready && format !== "table") shell.err.write(`nothing to change: ${printable(words.object)} ${result}\n`);
  await writeChange(shell, format, [schema, answer], { ...words, result });
}
