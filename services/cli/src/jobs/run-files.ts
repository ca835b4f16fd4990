import {
  JobService,
  type PlanJobResponse,
  PlanJobResponseSchema,
  SubmitJobResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { withTimeLimit } from "../client/time-limit.ts";
import { Failure, UsageError } from "../failure.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { outputFormat, type Plain, toPlain, writePlain } from "../output/format.ts";
import { printable } from "../output/text.ts";
import { followJobs } from "./follow.ts";
import { attemptForJob, type JobClient, type JobToRun, readJobFiles } from "./submit.ts";
import { refusalLines } from "./words.ts";

/** The options of `job run`. */
export interface JobRunOptions {
  readonly dryRun?: boolean;
  readonly detach?: boolean;
  readonly message?: string;
  readonly requestId?: string;
  readonly etag?: string;
}

/** `job run FILE...`: submit the jobs of files, and follow each until it is ready or finished. */
export const jobRun: Verb<JobRunOptions> = async (invocation) => {
  const { shell, args, options } = invocation;
  const format = outputFormat(options, ["table", "name", "json", "yaml"]);
  const jobs = await readJobFiles(shell, args);
  if (options.etag !== undefined && jobs.length > 1) throw new UsageError("--etag requires exactly one job");
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  if (options.dryRun === true) return planJobs(invocation, format, jobs, { control, client });
  const submitted: { readonly name: string; readonly version: number }[] = [];
  const answers: Plain[] = [];
  for (const [at, job] of jobs.entries()) {
    const { name } = job.spec;
    const answer = await attemptForJob(control, `submit job ${name}`, job, () => client.submitJob(requestOf(job, at)));
    for (const warning of answer.warnings) shell.err.write(`warning: ${printable(`${name}: ${warning}`)}\n`);
    const version = answer.job?.version ?? 0;
    submitted.push({ name, version });
    answers.push(toPlain(SubmitJobResponseSchema, answer));
    const what = answer.changed ? "submitted" : "nothing to change,";
    if (format === "table") shell.out.write(`${printable(name)}: ${what} version ${version}\n`);
    if (format === "name") shell.out.write(`${printable(name)}\n`);
  }
  if (format === "json" || format === "yaml") await writePlain(shell, format, { jobs: answers });
  if (options.detach === true) return;
  // For scripts, print only the response on standard output, and the progress on standard error.
  const followed = format === "table" ? shell : { ...shell, out: shell.err };
  await followJobs(followed, control, client, submitted);

  function requestOf({ spec }: JobToRun, at: number) {
    const { message: reason = "", requestId = "", etag = "" } = options;
    // Give each job its own key, because each job is a separate request.
    return { spec, reason, etag, requestId: at === 0 || requestId === "" ? requestId : `${requestId}/${at}` };
  }
};

/** `job wait JOB...`: follow jobs until each is ready or finished. */
export const jobWait: Verb = async ({ shell, args, options }) => {
  outputFormat(options, ["table"]);
  const jobs = args.map((name) => ({ name, version: null }));
  await withTimeLimit(
    shell,
    options,
    async (limited, others) => {
      const control = reachControlPlane(limited, others);
      await followJobs(limited, control, control.client("scheduler", JobService), jobs);
    },
    () => `waiting for ${args.length === 1 ? "job" : "jobs"} ${args.map(printable).join(", ")}`,
  );
};

/** Show what submitting the jobs would do. Throws Failure when any job would be refused. */
async function planJobs(
  { shell, options }: Invocation<JobRunOptions>,
  format: "table" | "name" | "json" | "yaml",
  jobs: readonly JobToRun[],
  { control, client }: { readonly control: ControlPlane; readonly client: JobClient },
): Promise<void> {
  const plans: Plain[] = [];
  const refused: string[] = [];
  const { etag = "" } = options;
  for (const job of jobs) {
    const { spec } = job;
    const plan = await attemptForJob(control, `plan job ${spec.name}`, job, () => client.planJob({ spec, etag }));
    if (format === "table") shell.out.write(planText(spec.name, plan));
    if (format === "name") shell.out.write(plan.executions.map(({ nodeId }) => `${printable(nodeId)}\n`).join(""));
    plans.push(toPlain(PlanJobResponseSchema, plan));
    if (plan.refusal !== undefined) refused.push(`job ${spec.name} would be refused: ${plan.refusal.message}`);
  }
  if (format === "json" || format === "yaml") await writePlain(shell, format, { plans });
  if (refused.length > 0) throw new Failure(refused.map(printable).join("\n"));
}

/** Maximum number of executions to list one by one. */
const MOST_NAMED = 20;

/** What submitting a job would do, for people. */
export function planText(name: string, plan: PlanJobResponse): string {
  const { executions, waiting, refusals, nodes, version, changed, warnings } = plan;
  const heading = changed
    ? `${name}: would become version ${version}`
    : `${name}: nothing to change, version ${version}`;
  const named = executions.slice(0, MOST_NAMED).map(({ index, nodeId, executionId, replaced }) => {
    const stays = executionId === "" ? "placed" : replaced ? `replaces ${executionId}` : `stays, ${executionId}`;
    return `  ${index}  ${nodeId}  ${stays}`;
  });
  const more = executions.length > named.length ? [`  and ${executions.length - named.length} more`] : [];
  const lines = [
    heading,
    ...named,
    ...more,
    ...(waiting > 0 ? [`  ${waiting} would wait`] : []),
    ...refusalLines(refusals, nodes).map((line) => `  ${line}`),
    ...warnings.map((warning) => `  warning: ${warning}`),
  ];
  return lines.map((line) => `${printable(line)}\n`).join("");
}
