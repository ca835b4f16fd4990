import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import {
  AdoptExecutionResponseSchema,
  DeleteJobResponseSchema,
  JobService,
  RestartJobResponseSchema,
  RevertJobResponseSchema,
  ScaleJobResponseSchema,
  StopExecutionResponseSchema,
  StopJobResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { alreadyDone, JOB_HAS_SPECIFICATION, JOB_IS_STOPPED } from "../client/already-done.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Invocation, Verb } from "../command.ts";
import { parseCount, UsageError } from "../failure.ts";
import { ANSWER_FORMATS, outputFormat, writeAnswer } from "../output/format.ts";
import { printable } from "../output/text.ts";
import { followJobs } from "./follow.ts";

/** What the verbs that change jobs take. */
export interface JobChangeOptions {
  readonly message?: string;
  readonly requestId?: string;
  readonly etag?: string;
  readonly strict?: boolean;
  /** Of `job stop`: one execution. */
  readonly execution?: string;
}

/** `job stop JOB`, or one execution of it. */
export const stopOne: Verb<JobChangeOptions> = async (invocation) => {
  const { execution } = invocation.options;
  const [name] = invocation.args;
  if ((name === undefined) === (execution === undefined)) {
    throw new UsageError("name the job, or one execution with --execution");
  }
  if (execution !== undefined) {
    await change(invocation, `stop execution ${execution}`, StopExecutionResponseSchema, (client, by) =>
      client.stopExecution({ execution, ...by }),
    );
    return;
  }
  await change(invocation, `stop job ${name}`, StopJobResponseSchema, (client, by) =>
    client.stopJob({ name: name ?? "", ...by }),
  );
};

/** `job delete JOB`. */
export const deleteOne: Verb<JobChangeOptions> = async (invocation) => {
  const [name = ""] = invocation.args;
  const { etag = "" } = invocation.options;
  await change(invocation, `delete job ${name}`, DeleteJobResponseSchema, (client, by) =>
    client.deleteJob({ name, etag, ...by }),
  );
};

/** `job scale JOB COUNT`. */
export const jobScale: Verb<JobChangeOptions> = async (invocation) => {
  const [name = "", text = ""] = invocation.args;
  const count = parseCount("count", text, 0);
  const { etag = "" } = invocation.options;
  await change(invocation, `scale job ${name}`, ScaleJobResponseSchema, (client, by) =>
    client.scaleJob({ name, count, etag, ...by }),
  );
};

/** `job restart JOB`. */
export const jobRestart: Verb<JobChangeOptions> = async (invocation) => {
  const [name = ""] = invocation.args;
  await change(invocation, `restart job ${name}`, RestartJobResponseSchema, (client, by) =>
    client.restartJob({ name, ...by }),
  );
};

/** `job adopt EXECUTION`. */
export const jobAdopt: Verb<JobChangeOptions> = async (invocation) => {
  const [execution = ""] = invocation.args;
  await change(invocation, `adopt execution ${execution}`, AdoptExecutionResponseSchema, (client, by) =>
    client.adoptExecution({ execution, ...by }),
  );
};

/** What `job revert` takes. */
export interface JobRevertOptions {
  readonly message?: string;
  readonly requestId?: string;
  readonly etag?: string;
  readonly detach?: boolean;
  readonly strict?: boolean;
}

/** `job revert JOB [VERSION]`: give a job the specification of an earlier version, and follow it until it is ready. */
export const jobRevert: Verb<JobRevertOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const [name = "", text] = args;
  const version = text === undefined ? 0 : parseCount("version", text, 1);
  const { message: reason = "", requestId = "", etag = "", detach = false, strict = false } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  const answer = await control.attempt("scheduler", `revert job ${name}`, () =>
    alreadyDone(
      shell,
      strict,
      () => client.revertJob({ name, version, reason, requestId, etag }),
      JOB_HAS_SPECIFICATION,
    ),
  );
  if (answer === null) {
    shell.out.write(format === "table" ? "Ok\n" : "");
    return;
  }
  const { job, revertedTo } = answer;
  const made = job?.version ?? 0;
  const said = `Ok: ${printable(name)} reverted to version ${revertedTo}, as version ${made}\n`;
  await writeAnswer(shell, format, [RevertJobResponseSchema, answer], said);
  if (detach) return;
  // Scripts get only the answer on standard output, and the progress on standard error.
  const followed = format === "table" ? shell : { ...shell, out: shell.err };
  await followJobs(followed, control, client, [{ name, version: made }]);
};

/** Make a change, and print Ok or its answer. */
async function change<Desc extends DescMessage>(
  { shell, options }: Invocation<JobChangeOptions>,
  what: string,
  schema: Desc,
  call: (
    client: Client<typeof JobService>,
    by: { readonly reason: string; readonly requestId: string },
  ) => Promise<MessageShape<Desc>>,
): Promise<void> {
  const format = outputFormat(options, ANSWER_FORMATS);
  const { message: reason = "", requestId = "", strict = false } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  const stops = what.startsWith("stop ") ? JOB_IS_STOPPED : undefined;
  const answer = await control.attempt("scheduler", what, () =>
    alreadyDone(shell, strict, () => call(client, { reason, requestId }), stops),
  );
  if (answer === null) shell.out.write(format === "table" ? "Ok\n" : "");
  else await writeAnswer(shell, format, [schema, answer], "Ok\n");
}
