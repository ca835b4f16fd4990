import type { Command } from "commander";
import {
  action,
  addChangeOptions,
  addLimit,
  addListingOptions,
  addNotes,
  loaded,
  STRICT,
  type Verb,
} from "../command.ts";
import type { JobChangeOptions, JobRevertOptions } from "../jobs/change.ts";
import type { JobSelectionOptions } from "../jobs/change-jobs.ts";
import type { ExecutionListOptions, JobListOptions } from "../jobs/list.ts";
import type { LogsOptions } from "../jobs/logs.ts";
import type { JobRunOptions } from "../jobs/run-files.ts";
import type { ListingOptions } from "../output/listing.ts";
import type { Shell } from "../shell.ts";

const JOB_NAME = "Name of the job";
const FOLLOWING =
  "A service or daemon is followed until all of it is ready and its update is done, a batch or ops job until it is " +
  "finished; the progress goes to standard error. It exits with 1 when a batch or ops job fails, when a job is " +
  "stopped, when an update halts, and when a replica of a service or daemon fails three times in a row, or has no " +
  "retries left. The scheduler continues to run the job as it says.";
/** How a job or an execution is named where a person reads the answer. */
const READ_SUBJECT = `${JOB_NAME}, or id of an execution or the first 8 letters or more of it`;
const ETAG = ["--etag <etag>", "Only when the job has not changed since this etag was read"] as const;

/** Define the verbs of `job`. They are loaded one by one, when they are called. */
export function defineJob(job: Command, shell: Shell): void {
  const run = job
    .command("run")
    .description("Submit the jobs of a file, and follow each until it is ready or finished")
    .argument("<file...>", "Job files, YAML or JSON; - is standard input")
    .option(
      "--dry-run",
      "Only show where each execution would go and why not elsewhere; fails when a job would be refused",
    )
    .option("--detach", "Do not follow the jobs: exit once they are accepted")
    .option(...ETAG);
  addNotes(
    addChangeOptions(run),
    FOLLOWING,
    "Several jobs are followed one after the other, and all of them have to succeed. Ctrl-C ends the following and " +
      "not the jobs. `rollcall job wait` follows again.",
    "Submitting a job as it is changes nothing while it is active, and runs it again once it has ended; another one " +
      "of the same name makes a new version. " +
      "docs/job-file.md describes the file.",
    '-o json|yaml prints {"jobs": [rollcall.scheduler.v1.SubmitJobResponse, ...]}, with --dry-run {"plans": ' +
      "[rollcall.scheduler.v1.PlanJobResponse, ...]}.",
  ).action(act<JobRunOptions>(shell, async () => (await import("../jobs/run-files.ts")).jobRun));
  const wait = job
    .command("wait")
    .description("Follow jobs until each is ready or finished, and exit with their result")
    .argument("<job...>", JOB_NAME);
  addNotes(wait, FOLLOWING).action(act(shell, async () => (await import("../jobs/run-files.ts")).jobWait));
  defineListings(job, shell);
  const describe = job
    .command("describe")
    .alias("status")
    .description("Show a job on one screen, with its latest executions")
    .argument("<job>", JOB_NAME)
    .action(act(shell, async () => (await import("../jobs/describe.ts")).jobDescribe));
  addNotes(describe, "-o json|yaml prints a rollcall.scheduler.v1.GetJobResponse in proto JSON.");
  const why = job
    .command("why")
    .description("Explain how a job or an execution came to where it is, and what it waits for")
    .argument("<job-or-execution>", READ_SUBJECT)
    .action(act(shell, async () => (await import("../jobs/describe.ts")).jobWhy));
  addNotes(why, "-o json|yaml prints a rollcall.scheduler.v1.ExplainExecutionResponse in proto JSON.");
  const logs = job
    .command("logs")
    .description("Show the output of a job's executions, or of one execution")
    .argument("<job-or-execution>", READ_SUBJECT)
    .option("-f, --follow", "Follow the output until the job or the execution ends")
    .option("--stdout", "Only standard output")
    .option("--stderr", "Only standard error")
    .option("--tail <lines>", "Show only the last lines of each output of each execution")
    .option("--since <time>", "Show only output since a duration ago, such as 10m, or since a time in RFC 3339")
    .option("--timestamps", "Begin each line with the time at which it was written, in UTC");
  addNotes(
    logs,
    "What the execution wrote to standard error goes to standard error. Bytes are written as they are. It takes the " +
      "role submitter.",
    "Of a job, all executions of its present run are shown, and those of earlier runs that still run: 100 at most, " +
      "the oldest first. Where there are several, each line begins with the job and the replica (web.0) or the node " +
      "(web@node-1), and with the end of the execution's id where a replica had several. With --follow, executions " +
      "that start later are shown too.",
    "The output is kept on the execution's node: for a day after its end, in files whose size the job bounds. What " +
      "is no longer kept is reported on standard error, with the number of bytes.",
    "Times are those of the node's clock, and precise to a second. Of an execution that wrote in more than 4,096 " +
      "different seconds, older times are less precise. A time that is not known is shown as unknown, and --since " +
      "shows what has no known time.",
  ).action(act<LogsOptions>(shell, async () => (await import("../jobs/logs.ts")).jobLogs));
  defineChanges(job, shell);
}

function defineListings(job: Command, shell: Shell): void {
  const list = job
    .command("list")
    .description("List jobs")
    .option("--states <states>", "Only active, stopped, completed or failed jobs; several with commas")
    .option("--types <types>", "Only batch, service, ops or daemon jobs; several with commas");
  addNotes(
    addListingOptions(addLimit(list, "jobs")),
    "-o json|yaml prints a rollcall.scheduler.v1.ListJobsResponse in proto JSON; -o csv prints RFC 4180.",
  ).action(act<JobListOptions>(shell, async () => (await import("../jobs/list.ts")).jobList));
  const executions = job
    .command("executions")
    .description("List executions, the newest first")
    .argument("[job]", JOB_NAME)
    .option("--node <node>", "Only on this node, by its id")
    .option("--states <states>", "Only in these states, for example running,ready,lost,failed");
  addNotes(
    addListingOptions(addLimit(executions, "executions", "100")),
    "-o json|yaml prints a rollcall.scheduler.v1.ListExecutionsResponse in proto JSON; -o csv prints RFC 4180.",
  ).action(act<ExecutionListOptions>(shell, async () => (await import("../jobs/list.ts")).jobExecutions));
  const history = job
    .command("history")
    .description("List the versions of a job that it can be reverted to, the newest first")
    .argument("<job>", JOB_NAME);
  addNotes(
    addListingOptions(addLimit(history, "versions")),
    "The newest 100 versions are kept, and the last one that became ready. A version of a service or daemon became " +
      "ready when all that was placed of it was ready for update.minReadyTime. COPY OF names the version that first " +
      "had the specification of one that a revert made.",
    "-o json|yaml prints a rollcall.scheduler.v1.ListJobVersionsResponse in proto JSON, with the job of each version.",
  ).action(
    act<ListingOptions & { readonly limit?: string }>(shell, async () => (await import("../jobs/list.ts")).jobHistory),
  );
  const owners = job.command("owners").description("List the owners of jobs, with what their jobs use of the quotas");
  addNotes(
    addListingOptions(addLimit(owners, "owners")),
    "The owner of a job is who submitted its newest version. It takes the role admin. Quota.Jobs, Quota.Executions " +
      "and Quota.Cores of the control plane limit what submitters can use.",
    "-o json|yaml prints a rollcall.scheduler.v1.ListOwnersResponse in proto JSON, with the quotas.",
  ).action(
    act<ListingOptions & { readonly limit?: string }>(shell, async () => (await import("../jobs/list.ts")).jobOwners),
  );
}

function defineChanges(job: Command, shell: Shell): void {
  const stop = job
    .command("stop")
    .description("Stop jobs: all executions end, and none is placed again; a job that has ended keeps its result")
    .argument("[job...]", "Names of jobs")
    .option("--execution <execution>", "Only this execution, by its id; a service or daemon gets another in its place")
    .option("--types <types>", "Active jobs of these types: batch, service, ops or daemon; several with commas");
  addNotes(
    addSelectionOptions(stop, "Every active job").option("--wait", "Wait until all executions have ended"),
    `${ASKS} What has not ended goes to standard error with --wait, and what holds it; Ctrl-C ends the waiting and ` +
      "not the stopping.",
    "Prints Ok, or the outcome for each of several jobs; -o json|yaml prints a " +
      'rollcall.scheduler.v1.StopJobResponse in proto JSON, or {"jobs": [...]} of them.',
  ).action(act<JobSelectionOptions>(shell, async () => (await import("../jobs/change-jobs.ts")).jobStop));
  const remove = job
    .command("delete")
    .description("Delete jobs that have ended, with their versions and the records of their executions")
    .argument("[job...]", "Names of jobs")
    .option("--types <types>", "Ended jobs of these types: batch, service, ops or daemon; several with commas")
    .option("--states <states>", "Only stopped, completed or failed jobs; several with commas");
  addNotes(
    addSelectionOptions(remove, "Every job that has ended").option(...ETAG),
    ASKS,
    "An active job is refused: stop it first. So is a job of which a node may still run an execution. Output stays " +
      "on its node as long as it is kept there.",
    "Prints Ok, or the outcome for each of several jobs; -o json|yaml prints a " +
      'rollcall.scheduler.v1.DeleteJobResponse in proto JSON, or {"jobs": [...]} of them.',
  ).action(act<JobSelectionOptions>(shell, async () => (await import("../jobs/change-jobs.ts")).jobDelete));
  const scale = job
    .command("scale")
    .description("Change the count of a batch job or service")
    .argument("<job>", JOB_NAME)
    .argument("<count>", "Executions wanted from now on; 0 is none")
    .option(...ETAG);
  defineChange(scale, shell, "ScaleJobResponse", async () => (await import("../jobs/change.ts")).jobScale);
  const restart = job
    .command("restart")
    .description("Replace each execution of a service or daemon, as its update policy says")
    .argument("<job>", JOB_NAME);
  defineChange(restart, shell, "RestartJobResponse", async () => (await import("../jobs/change.ts")).jobRestart);
  const revert = job
    .command("revert")
    .description("Give a job the specification of an earlier version, and follow it until it is ready or finished")
    .argument("<job>", JOB_NAME)
    .argument("[version]", "The version; without it the last one that became ready and differs from the present one")
    .option("--detach", "Do not follow the job: exit once the new version is accepted")
    .option(...ETAG)
    .option(...STRICT);
  addNotes(
    addChangeOptions(revert),
    "A revert makes a new version, and the job rolls to it as its update policy says. Executions that already run " +
      "that specification stay. A count that was changed by `rollcall job scale` since the newest version was " +
      "submitted stays too. `rollcall job history` shows the versions, and which of them became ready.",
    FOLLOWING,
    "Prints Ok; -o json|yaml prints a rollcall.scheduler.v1.RevertJobResponse in proto JSON.",
  ).action(act<JobRevertOptions>(shell, async () => (await import("../jobs/change.ts")).jobRevert));
  const adopt = job
    .command("adopt")
    .description("Make an execution that is ORPHANED one of its job again")
    .argument("<execution>", "Id of the execution");
  defineChange(adopt, shell, "AdoptExecutionResponse", async () => (await import("../jobs/change.ts")).jobAdopt);
}

const ASKS = "One job that is named is changed at once; several, or those that options choose, after a question.";

/** The options of verbs that change several jobs. */
function addSelectionOptions(command: Command, all: string): Command {
  return addChangeOptions(command)
    .option("--all", all)
    .option("-y, --yes", "Do not ask before changing jobs that options chose, or several")
    .option("--dry-run", "Only print which jobs would be changed")
    .option(...STRICT);
}

function defineChange(
  command: Command,
  shell: Shell,
  answer: string,
  load: () => Promise<Verb<JobChangeOptions>>,
): void {
  addNotes(
    addChangeOptions(command),
    `Prints Ok; -o json|yaml prints a rollcall.scheduler.v1.${answer} in proto JSON.`,
  ).action(act<JobChangeOptions>(shell, load));
}

function act<Options>(shell: Shell, load: () => Promise<Verb<Options>>) {
  return action(shell, loaded<Options>(load));
}
