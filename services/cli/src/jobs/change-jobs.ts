import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import {
  DeleteJobResponseSchema,
  type Job,
  JobSchema,
  JobService,
  type JobState,
  StopJobResponseSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { ENDED_STATE_WORDS, JOB_TYPE_WORDS } from "../choices.ts";
import { JOB_IS_STOPPED } from "../client/already-done.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { Failure, pickWords, UsageError } from "../failure.ts";
import { reasonIn, refusalHint } from "../hints.ts";
import type { Invocation, Verb } from "../invocation.ts";
import { outputFormat, type Plain, toPlain, writePlain } from "../output/format.ts";
import { readPages } from "../output/listing.ts";
import { showing } from "../output/progress.ts";
import { columnsOf } from "../output/style.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import { counted, printable } from "../output/text.ts";
import { deleteOne, type JobChangeOptions, stopOne } from "./change.ts";
import { waitUntilEnded } from "./follow.ts";
import type { JobClient } from "./submit.ts";
import { JOB_STATES, JOB_TYPES, jobStateWord, jobTypeWord } from "./words.ts";

/** The options of the verbs that change several jobs. */
export interface JobSelectionOptions extends JobChangeOptions {
  readonly types?: string;
  readonly states?: string;
  readonly all?: boolean;
  readonly yes?: boolean;
  readonly wait?: boolean;
}

/** Maximum number of jobs named in one command. */
const MOST_NAMES = 500;

/** A verb that changes jobs, one call for each. */
interface JobWork<Desc extends DescMessage> {
  /** As shown to the user, for example "stop". */
  readonly verb: string;
  /** The states of the jobs to change when the command names no job. */
  readonly states: readonly JobState[];
  readonly schema: Desc;
  /** Refusals that mean that there is nothing to change. */
  readonly alreadyDone: ReadonlySet<ErrorReason>;
  call(client: JobClient, request: JobRequest): Promise<MessageShape<Desc>>;
}

interface JobRequest {
  readonly name: string;
  readonly reason: string;
  readonly requestId: string;
  /** Ignored by methods that take no etag. */
  readonly etag: string;
  readonly validateOnly: boolean;
}

const STOP: JobWork<typeof StopJobResponseSchema> = {
  ...{ verb: "stop", states: [JOB_STATES.active], schema: StopJobResponseSchema, alreadyDone: JOB_IS_STOPPED },
  call: (client, request) => client.stopJob(request),
};

const DELETE: JobWork<typeof DeleteJobResponseSchema> = {
  ...{ verb: "delete", schema: DeleteJobResponseSchema, alreadyDone: new Set() },
  states: ENDED_STATE_WORDS.map((word) => JOB_STATES[word]),
  call: (client, request) => client.deleteJob(request),
};

/** `job stop JOB...`: stop jobs that are named or selected, or one execution. */
export const jobStop: Verb<JobSelectionOptions> = async (invocation) => {
  const { shell, args, options } = invocation;
  if (options.execution !== undefined) {
    if (options.wait === true) throw new UsageError("--wait and --execution cannot be combined");
    await stopOne(invocation);
    return;
  }
  if (isOne(invocation)) await stopOne(invocation);
  const stopped = isOne(invocation) ? args : await changeJobs(invocation, STOP);
  if (options.wait !== true) return;
  const control = reachControlPlane(shell, options);
  // For scripts, print only the response on standard output.
  const followed = outputFormat(options, FORMATS) === "table" ? shell : { ...shell, out: shell.err };
  for (const name of stopped) await waitUntilEnded(followed, control, name);
};

/** `job delete JOB...`: delete jobs that have ended. */
export const jobDelete: Verb<JobSelectionOptions> = async (invocation) => {
  if (isOne(invocation)) await deleteOne(invocation);
  else await changeJobs(invocation, DELETE);
};

const FORMATS = ["table", "name", "json", "yaml"] as const;

type Named = Pick<Invocation<JobSelectionOptions>, "args" | "options">;

/** Whether a single job is named, which needs no confirmation. */
function namesOne({ args, options: { types, states, all } }: Named): boolean {
  return args.length === 1 && [types, states, all].every((option) => option === undefined);
}

/** Whether to change a single job, whose result is printed as that of one object. */
function isOne(invocation: Named): boolean {
  return namesOne(invocation) && invocation.options.dryRun !== true;
}

/** The result for one job. */
interface Outcome {
  readonly name: string;
  /** The job before the change; undefined when no job has the name. */
  readonly job: Job | undefined;
  readonly text: string;
  readonly isRefused: boolean;
  readonly hint: string | null;
  readonly answer: Plain | null;
}

/**
 * Change the jobs that are named or selected, after a confirmation if there can be several. A dry run only validates.
 * Returns the names of the jobs that are now in the requested state. Throws UsageError without a terminal to ask on,
 * and Failure when a job was refused.
 */
async function changeJobs<Desc extends DescMessage>(
  invocation: Invocation<JobSelectionOptions>,
  work: JobWork<Desc>,
): Promise<readonly string[]> {
  const { shell, options } = invocation;
  const format = outputFormat(options, FORMATS);
  const { message: reason = "", requestId = "", etag = "", strict = false, dryRun = false } = options;
  if (etag !== "" && !namesOne(invocation)) throw new UsageError("--etag requires exactly one named job");
  const control = reachControlPlane(shell, options);
  const client = control.client("scheduler", JobService);
  const chosen = await chooseJobs(invocation, work, control, client);
  if (chosen.length === 0) {
    await print(invocation, format, []);
    return [];
  }
  if (!dryRun && options.yes !== true && !(await isWanted(invocation, work.verb, chosen))) {
    throw new Failure("nothing was changed");
  }
  const outcomes: Outcome[] = [];
  try {
    await showing(shell, `${work.verb} jobs`, async (shown) => {
      for (const { name, job } of chosen) {
        // Give each job a separate request id, because each job is a separate request. The id contains the job's name,
        // because a repeated command can select other jobs.
        const part = requestId === "" ? "" : `${requestId}/${name}`;
        const request = { name, reason, requestId: part, etag, validateOnly: dryRun };
        outcomes.push(await changeOne(control, work, { request, job, strict }, client));
        shown?.update(`${work.verb} jobs, ${outcomes.length} of ${chosen.length}`);
      }
    });
  } catch (error) {
    if (outcomes.length === 0) throw error;
    await print(invocation, format, outcomes);
    shell.err.write(`stopped after ${counted(outcomes.length, "job")}; run the command again for the rest\n`);
    throw error;
  }
  await print(invocation, format, outcomes);
  const refused = outcomes.filter(({ isRefused }) => isRefused);
  if (refused.length > 0) {
    const named = format === "table" ? [] : refused.map(({ name, text }) => printable(`${name}: ${text}`));
    const hints = new Set(refused.flatMap(({ hint }) => (hint === null ? [] : [`hint: ${printable(hint)}`])));
    throw new Failure(
      [`failed to ${work.verb} ${refused.length} of ${counted(outcomes.length, "job")}`, ...named, ...hints].join("\n"),
    );
  }
  return dryRun ? [] : outcomes.map(({ name }) => name);
}

type ChosenJob = Pick<Outcome, "name" | "job">;

async function chooseJobs(
  { args, options }: Invocation<JobSelectionOptions>,
  { verb, states: usual }: Pick<JobWork<DescMessage>, "verb" | "states">,
  control: ControlPlane,
  client: JobClient,
): Promise<readonly ChosenJob[]> {
  const names = [...new Set(args)];
  const { all = false } = options;
  for (const [option, value] of Object.entries({ types: options.types, states: options.states })) {
    if (value?.trim() === "") throw new UsageError(`--${option} is empty: give a value, or leave it out`);
  }
  const types = pickWords("types", options.types ?? "", JOB_TYPE_WORDS).map((word) => JOB_TYPES[word]);
  const picked = pickWords("states", options.states ?? "", ENDED_STATE_WORDS).map((word) => JOB_STATES[word]);
  const isFiltered = types.length > 0 || picked.length > 0;
  if (all && (isFiltered || names.length > 0)) {
    throw new UsageError("--all cannot be combined with names or filters");
  }
  if (names.length === 0 && !isFiltered && !all) {
    const choices = verb === "stop" ? "--types or --all" : "--types, --states or --all";
    throw new UsageError(`name the jobs, or select them with ${choices}`);
  }
  if (names.length > MOST_NAMES) {
    throw new UsageError(`at most ${MOST_NAMES} jobs can be named at once, not ${names.length}`);
  }
  const states = picked.length > 0 ? picked : names.length > 0 ? [] : usual;
  if (names.length > 0) {
    const found: ChosenJob[] = [];
    for (const name of names) found.push({ name, job: await findJob(control, client, name) });
    return found.filter(({ job }) => job === undefined || isAmong(job, types, states));
  }
  const filter = { types: [...types], states: [...states] };
  const pages = readPages(
    (part) => control.attempt("scheduler", "list jobs", () => client.listJobs({ ...filter, ...part })),
    { countOf: ({ jobs }) => jobs.length },
  );
  const found: ChosenJob[] = [];
  for await (const { jobs } of pages) found.push(...jobs.map((job) => ({ name: job.spec?.name ?? "", job })));
  return found;
}

/** Find a job by its name. Undefined when it does not exist, because the change itself then reports that. */
async function findJob(control: ControlPlane, client: JobClient, name: string): Promise<Job | undefined> {
  return control.attempt("scheduler", `find job ${name}`, async () => {
    try {
      return (await client.getJob({ name })).job;
    } catch (error) {
      if (reasonIn(error) === ErrorReason.JOB_NOT_FOUND) return undefined;
      throw error;
    }
  });
}

function isAmong({ spec, state }: Job, types: readonly JobType[], states: readonly JobState[]): boolean {
  const isOfType = types.length === 0 || (spec !== undefined && types.includes(spec.type));
  return isOfType && (states.length === 0 || states.includes(state));
}

/** Refusals that concern only one job. */
const OF_THE_JOB: ReadonlySet<ErrorReason> = new Set([
  ...[ErrorReason.JOB_NOT_FOUND, ErrorReason.JOB_STOPPED, ErrorReason.JOB_ENDED],
  ...[ErrorReason.JOB_ACTIVE, ErrorReason.JOB_NOT_ENDED, ErrorReason.ETAG_MISMATCH],
]);

async function changeOne<Desc extends DescMessage>(
  control: ControlPlane,
  { verb, schema, alreadyDone, call }: JobWork<Desc>,
  { request, job, strict }: { readonly request: JobRequest; readonly job: Job | undefined; readonly strict: boolean },
  client: JobClient,
): Promise<Outcome> {
  const { name } = request;
  return control.attempt("scheduler", `${verb} job ${name}`, async () => {
    try {
      const answer = await call(client, request);
      const done = { name, job, text: "Ok", isRefused: false, hint: null };
      return { ...done, answer: toPlain(schema, answer) };
    } catch (error) {
      const reason = reasonIn(error);
      // Rethrow any other error, because it would be the same for all jobs.
      if (!OF_THE_JOB.has(reason)) throw error;
      const isDone = !strict && alreadyDone.has(reason);
      const { rawMessage } = ConnectError.from(error);
      const text = isDone ? `nothing to change: ${rawMessage}` : rawMessage;
      const hint = isDone ? null : refusalHint(reason, { job: name });
      return { name, job, text, isRefused: !isDone, hint, answer: null };
    }
  });
}

async function isWanted(
  { shell }: Invocation<JobSelectionOptions>,
  verb: string,
  chosen: readonly ChosenJob[],
): Promise<boolean> {
  const question = `${verb} ${counted(chosen.length, "job")}?`;
  if (shell.ask === null) {
    throw new UsageError(
      `cannot ask whether to ${question.slice(0, -1)} without a terminal: use --yes to confirm, or --dry-run to see ` +
        "the jobs",
    );
  }
  shell.err.write(new TablePrinter(LISTED_COLUMNS, { columns: columnsOf(shell) }).print(chosen.map(listed)));
  const answer = await shell.ask(`${question} [y/N] `);
  return /^y(es)?$/i.test(answer.trim());
}

function listed({ name, job }: ChosenJob): Outcome {
  return { name, job, text: "", isRefused: false, hint: null, answer: null };
}

async function print(
  { shell, options }: Invocation<JobSelectionOptions>,
  format: (typeof FORMATS)[number],
  outcomes: readonly Outcome[],
): Promise<void> {
  const isDry = options.dryRun === true;
  if (format === "json" || format === "yaml") {
    const plain = ({ job, answer }: Outcome) => (isDry && job !== undefined ? toPlain(JobSchema, job) : answer);
    const shown = outcomes.filter(({ isRefused }) => !isDry || !isRefused);
    await writePlain(shell, format, { jobs: shown.flatMap((outcome) => plain(outcome) ?? []) });
  } else if (format === "name") {
    shell.out.write(outcomes.map(({ name, isRefused }) => (isRefused ? "" : `${printable(name)}\n`)).join(""));
  } else if (outcomes.length === 0) {
    shell.err.write("no jobs match\n");
  } else {
    const columns = isDry ? [...LISTED_COLUMNS, OUTCOME_COLUMN] : [JOB_COLUMN, OUTCOME_COLUMN];
    shell.out.write(new TablePrinter(columns, { columns: columnsOf(shell) }).print(outcomes));
  }
}

const JOB_COLUMN: Column<Outcome> = { title: "JOB", name: "job", cell: ({ name }) => ({ text: name }) };

const OUTCOME_COLUMN: Column<Outcome> = {
  ...{ title: "OUTCOME", name: "outcome" },
  cell: ({ text, isRefused }) => ({ text, style: isRefused ? "bad" : text === "Ok" ? "good" : "plain" }),
};

/** The jobs before anything is changed. */
const LISTED_COLUMNS: readonly Column<Outcome>[] = [
  JOB_COLUMN,
  { title: "TYPE", name: "type", cell: ({ job }) => ({ text: job === undefined ? "-" : jobTypeWord(job.spec?.type) }) },
  { title: "STATE", name: "state", cell: ({ job }) => ({ text: job === undefined ? "-" : jobStateWord(job.state) }) },
  { title: "WANTED", name: "wanted", cell: ({ job }) => ({ text: String(job?.wanted ?? 0) }) },
];
