import type { Command } from "commander";
import { action, addChangeOptions, addLimit, addListingOptions, addNotes, loaded, STRICT } from "../command.ts";
import type { Verb } from "../invocation.ts";
import type { JobChangeOptions, JobRevertOptions } from "../jobs/change.ts";
import type { JobSelectionOptions } from "../jobs/change-jobs.ts";
import type { ExecutionListOptions, JobListOptions } from "../jobs/list.ts";
import type { LogsOptions } from "../jobs/logs.ts";
import type { JobRunOptions } from "../jobs/run-files.ts";
import type { ListingOptions } from "../output/listing.ts";
import type { Shell } from "../shell.ts";

const JOB_NAME = "Name of the job";
const FOLLOWING =
  "Follows a service or daemon until all its executions have been ready for update.minReadyTime and its update is " +
  "done, and a batch or ops job until it is finished. Progress goes to standard error. Exits with 1 if a batch or " +
  "ops " +
  "job fails, if a job is stopped, if an update halts, or if a replica of a service or daemon fails three times in " +
  "a row or has no retries left. The scheduler continues to run the job as specified.";
/** How to name a job or an execution when a person reads the output. */
const READ_SUBJECT = `${JOB_NAME}, or id of an execution (at least its first 8 characters)`;
const ETAG = ["--etag <etag>", "Only if the job has not changed since this etag was read"] as const;

/** Define the verbs of `job`. Each is loaded when it is called. */
export function defineJob(job: Command, shell: Shell): void {
  const run = job
    .command("run")
    .description("Submit the jobs of a file, and follow each until it is ready or finished")
    .argument("<file...>", "Job files, YAML or JSON; - is standard input")
    .option(
      "--dry-run",
      "Only show where each execution would be placed and why not elsewhere; fails if a job would be refused",
    )
    .option("--detach", "Do not follow the jobs: exit once they are accepted")
    .option(...ETAG);
  addNotes(
    addChangeOptions(run),
    FOLLOWING,
    "Several jobs are followed one after the other, and all of them must succeed. Ctrl-C stops following, " +
      "not the jobs. `rollcall job wait` follows them again.",
    "Submitting an unchanged job has no effect while it is active, and runs it again once it has ended; a changed " +
      "job becomes a new version. docs/job-file.md describes the file.",
    '-o json|yaml prints {"jobs": [rollcall.scheduler.v1.SubmitJobResponse, ...]}, with --dry-run {"plans": ' +
      "[rollcall.scheduler.v1.PlanJobResponse, ...]}.",
  ).action(act<JobRunOptions>(shell, async () => (await import("../jobs/run-files.ts")).jobRun));
  const wait = job
    .command("wait")
    .description("Follow jobs until each is ready or finished, and exit with their result")
    .argument("<job...>", JOB_NAME);
  addNotes(wait, FOLLOWING, "--timeout limits the whole wait; by default it has no limit.").action(
    act(shell, async () => (await import("../jobs/run-files.ts")).jobWait),
  );
  defineListings(job, shell);
  const describe = job
    .command("describe")
    .description("Show a job on one screen, with its latest executions")
    .argument("<job>", JOB_NAME)
    .action(act(shell, async () => (await import("../jobs/describe.ts")).jobDescribe));
  addNotes(describe, "-o json|yaml prints a rollcall.scheduler.v1.GetJobResponse in proto JSON.");
  const why = job
    .command("why")
    .description("Explain the history, state and waits of a job or an execution")
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
    .option(
      "--tail <lines>",
      "Show only this many of the last lines of each execution's standard output and standard error",
    )
    .option("--since <time>", "Show only output since a duration ago, such as 10m, or since a time in RFC 3339")
    .option("--timestamps", "Start each line with the time at which it was written, in UTC");
  addNotes(
    logs,
    "The execution's standard error goes to standard error. Bytes are written unchanged. Requires the " +
      "role submitter.",
    "For a job, shows all executions of its current run, and those of earlier runs that are still running: at most " +
      "100, oldest first. If there are several, each line starts with the job and the replica (web.0) or the node " +
      "(web@node-1), and with the last characters of the execution's id if a replica had several. With --follow, " +
      "executions that " +
      "start later are shown too.",
    "Output is kept on the execution's node until a day after the execution has ended. The job limits its size. " +
      "Output that is no longer kept is reported on standard error, with the number of bytes.",
    "Times are by the node's clock, and precise to a second. If an execution wrote in more than 4,096 " +
      "different seconds, older times are less precise. A missing time is shown as unknown, and --since " +
      "includes output without a known time.",
  ).action(act<LogsOptions>(shell, async () => (await import("../jobs/logs.ts")).jobLogs));
  defineChanges(job, shell);
}

function defineListings(job: Command, shell: Shell): void {
  const list = job
    .command("list")
    .description("List jobs")
    .option("--states <states>", "Only active, stopped, completed or failed jobs, separated by commas")
    .option("--types <types>", "Only batch, service, ops or daemon jobs, separated by commas");
  addNotes(
    addListingOptions(addLimit(list, "jobs")),
    "-o json|yaml prints a rollcall.scheduler.v1.ListJobsResponse in proto JSON; -o csv prints RFC 4180.",
  ).action(act<JobListOptions>(shell, async () => (await import("../jobs/list.ts")).jobList));
  const executions = job
    .command("executions")
    .description("List executions, newest first")
    .argument("[job]", JOB_NAME)
    .option("--node <node>", "Only on this node, by its id")
    .option("--states <states>", "Only in these states, for example running,ready,lost,failed");
  addNotes(
    addListingOptions(addLimit(executions, "executions", "100")),
    "-o json|yaml prints a rollcall.scheduler.v1.ListExecutionsResponse in proto JSON; -o csv prints RFC 4180.",
  ).action(act<ExecutionListOptions>(shell, async () => (await import("../jobs/list.ts")).jobExecutions));
  const history = job
    .command("history")
    .description("List the versions that a job can be reverted to, newest first")
    .argument("<job>", JOB_NAME);
  addNotes(
    addListingOptions(addLimit(history, "versions")),
    "The newest 100 versions are kept, and the last one that became ready. A version of a service or daemon becomes " +
      "ready when all its placed executions have been ready for update.minReadyTime. For a version made by a revert, " +
      "COPY OF names the version that first had its specification.",
    "-o json|yaml prints a rollcall.scheduler.v1.ListJobVersionsResponse in proto JSON, with the job of each version.",
  ).action(
    act<ListingOptions & { readonly limit?: string }>(shell, async () => (await import("../jobs/list.ts")).jobHistory),
  );
  const owners = job
    .command("owners")
    .description("List the owners of jobs, and how much of the quotas their jobs use");
  addNotes(
    addListingOptions(addLimit(owners, "owners")),
    "A job's owner is the submitter of its newest version. Requires the role admin. Quota.Jobs, Quota.Executions " +
      "and Quota.Cores of the control plane limit what submitters can use.",
    "-o json|yaml prints a rollcall.scheduler.v1.ListOwnersResponse in proto JSON, with the quotas.",
  ).action(
    act<ListingOptions & { readonly limit?: string }>(shell, async () => (await import("../jobs/list.ts")).jobOwners),
  );
}

function defineChanges(job: Command, shell: Shell): void {
  const stop = job
    .command("stop")
    .description("Stop jobs: end all their executions, and place no new ones; a job that has ended keeps its result")
    .argument("[job...]", "Names of jobs")
    .option(
      "--execution <execution>",
      "Stop only this execution, by its id; a service or daemon then starts a replacement",
    )
    .option("--types <types>", "Active jobs of these types: batch, service, ops or daemon, separated by commas");
  addNotes(
    addSelectionOptions(stop, "All active jobs")
      .option(...STRICT)
      .option("--wait", "Wait until all executions have ended"),
    `${ASKS} With --wait, the remaining executions and what delays them are printed to standard error. Ctrl-C stops ` +
      "waiting; the executions still stop.",
    "Prints the result, or the outcome for each of several jobs; -o json|yaml prints a " +
      'rollcall.scheduler.v1.StopJobResponse in proto JSON, or {"jobs": [...]} of them.',
  ).action(act<JobSelectionOptions>(shell, async () => (await import("../jobs/change-jobs.ts")).jobStop));
  const remove = job
    .command("delete")
    .description("Delete jobs that have ended, with their versions and the records of their executions")
    .argument("[job...]", "Names of jobs")
    .option("--types <types>", "Ended jobs of these types: batch, service, ops or daemon, separated by commas")
    .option("--states <states>", "Only stopped, completed or failed jobs, separated by commas");
  addNotes(
    addSelectionOptions(remove, "All jobs that have ended").option(...ETAG),
    ASKS,
    "An active job is refused: stop it first. A job is also refused while a node may still run one of its " +
      "executions. " +
      "Output stays on its node as long as it is kept there.",
    "Prints the result, or the outcome for each of several jobs; -o json|yaml prints a " +
      'rollcall.scheduler.v1.DeleteJobResponse in proto JSON, or {"jobs": [...]} of them.',
  ).action(act<JobSelectionOptions>(shell, async () => (await import("../jobs/change-jobs.ts")).jobDelete));
  const scale = job
    .command("scale")
    .description("Change the count of a batch job or service")
    .argument("<job>", JOB_NAME)
    .argument("<count>", "Number of executions to run from now on; 0 for none")
    .option(...ETAG);
  defineChange(scale, shell, "ScaleJobResponse", async () => (await import("../jobs/change.ts")).jobScale);
  const restart = job
    .command("restart")
    .description(
      "Replace all executions of a service or daemon, following its update policy; refused after a halted update",
    )
    .argument("<job>", JOB_NAME);
  defineChange(restart, shell, "RestartJobResponse", async () => (await import("../jobs/change.ts")).jobRestart);
  const revert = job
    .command("revert")
    .description("Give a job the specification of an earlier version, and follow it until it is ready or finished")
    .argument("<job>", JOB_NAME)
    .argument(
      "[version]",
      "Version to revert to (default: the last one that became ready and differs from the current one)",
    )
    .option("--detach", "Do not follow the job: exit once the new version is accepted")
    .option(...ETAG)
    .option(...STRICT);
  addNotes(
    addChangeOptions(revert),
    "A revert makes a new version, which is rolled out following the job's update policy. Executions that already " +
      "run that specification are kept. A count that was changed by `rollcall job scale` since the newest version " +
      "was submitted is kept too. `rollcall job history` shows the versions, and which of them became ready.",
    FOLLOWING,
    "Prints the result; -o json|yaml prints a rollcall.scheduler.v1.RevertJobResponse in proto JSON.",
  ).action(act<JobRevertOptions>(shell, async () => (await import("../jobs/change.ts")).jobRevert));
  const adopt = job
    .command("adopt")
    .description("Return an ORPHANED execution to its job")
    .argument("<execution>", "Id of the execution");
  defineChange(adopt, shell, "AdoptExecutionResponse", async () => (await import("../jobs/change.ts")).jobAdopt);
}

const ASKS =
  "A single named job is changed at once. For several jobs, or jobs selected by options, the command asks first.";

/** The options of verbs that change several jobs. */
function addSelectionOptions(command: Command, all: string): Command {
  return addChangeOptions(command)
    .option("--all", all)
    .option("-y, --yes", "Do not ask before changing several jobs, or jobs selected by options")
    .option("--dry-run", "Only check and print what would be changed");
}

function defineChange(
  command: Command,
  shell: Shell,
  answer: string,
  load: () => Promise<Verb<JobChangeOptions>>,
): void {
  addNotes(
    addChangeOptions(command),
    `Prints the result; -o json|yaml prints a rollcall.scheduler.v1.${answer} in proto JSON.`,
  ).action(act<JobChangeOptions>(shell, load));
}

function act<Options>(shell: Shell, load: () => Promise<Verb<Options>>) {
  return action(shell, loaded<Options>(load));
}
