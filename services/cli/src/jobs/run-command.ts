import { randomBytes } from "node:crypto";
import { constants } from "node:os";
import { basename } from "node:path";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import {
  type Execution,
  ExecutionState,
  type Job,
  JobService,
  JobState,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type JobSpec, JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { isEndSeen, isOutdated, stateWords } from "@rollcall/domain";
import { type Read, readByteCount, readCores } from "@rollcall/wire/job-file";
import { Scalar } from "yaml";
import { JOB_IS_STOPPED } from "../client/already-done.ts";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { keepWatching } from "../client/keep-watching.ts";
import { Exit, Failure, parseCount, parseDurationMs, UsageError } from "../failure.ts";
import { reasonIn } from "../hints.ts";
import type { Verb } from "../invocation.ts";
import { checkedSelector } from "../nodes/selection.ts";
import { finishOutput } from "../output/finish-output.ts";
import { outputFormat } from "../output/format.ts";
import { printable } from "../output/text.ts";
import { type Shell, SILENT_SINK } from "../shell.ts";
import { watchJob } from "./follow.ts";
import { OutputWriter, SharedSink } from "./output-writer.ts";
import { gapWords, readOutput } from "./read-output.ts";
import type { JobClient } from "./submit.ts";
import { endWords, executionStateWord, hasOutput, refusalLines } from "./words.ts";

/** The options of `run`. */
export interface RunOptions {
  readonly name?: string;
  readonly selector?: string;
  readonly node?: string;
  readonly cores?: string;
  readonly memory?: string;
  readonly disk?: string;
  readonly gpus?: string;
  readonly gpuModel?: string;
  readonly env?: readonly string[];
  readonly directory?: string;
  readonly user?: string;
  readonly image?: string;
  readonly queueTimeout?: string;
  readonly maxRunTime?: string;
  readonly message?: string;
  readonly detach?: boolean;
}

/** The exit code when the command's own is unknown: EX_TEMPFAIL of sysexits.h. */
const NOT_KNOWN = 75;

/** `run -- COMMAND`: run a job with one execution, and exit with the execution's exit code. */
export const runCommand: Verb<RunOptions> = async ({ shell, args, options }) => {
  outputFormat(options, ["table"]);
  const spec = specOf(args, options);
  const { name } = spec;
  const { message: reason = "" } = options;
  let submitted = false;
  try {
    const control = reachControlPlane(shell, options);
    const client = control.client("scheduler", JobService);
    const { warnings, job } = await control.attempt("scheduler", "run the command", () => {
      submitted = true;
      return client.submitJob({ spec, reason });
    });
    for (const warning of warnings) shell.err.write(`warning: ${printable(warning)}\n`);
    if (options.detach === true) shell.out.write(`${name}\n`);
    else reportEnd(shell, await waitForEnd(shell, control, client, runOf(name, job)));
  } catch (error) {
    if (shell.interrupted.aborted && submitted) await stopRun(shell, options, name);
    // Throw without a message, because runCli reports output that could not be written.
    if (shell.interrupted.reason instanceof Failure) throw new Exit(NOT_KNOWN);
    if (!(error instanceof Failure)) throw error;
    // Do not exit with 1, which would be mistaken for the command's own code.
    throw new Exit(NOT_KNOWN, error.message, { cause: error });
  }
  await finishOutput(shell, NOT_KNOWN);
};

/**
 * Throws Exit with the command's exit code unless that is 0, and Failure if the output of a successful command could
 * not be read.
 */
function reportEnd(shell: Shell, { execution, hasCompleted, unread }: RunEnd): void {
  const code = exitCodeOf(execution, hasCompleted);
  // Fail, because a script that checks for code 0 assumes that the output is complete.
  if (code === 0 && unread !== null) throw new Failure(unread);
  if (code !== 0 && unread !== null) shell.err.write(`${unread}\n`);
  if (code !== 0) throw new Exit(code, code === execution.observation?.exitCode ? "" : endLine(execution));
}

function specOf(command: readonly string[], options: RunOptions): JobSpec {
  const { gpus, selector = "", node = "", gpuModel = "", directory = "", user = "", image } = options;
  const env = Object.fromEntries((options.env ?? []).map(parseVariable));
  const isDocker = image !== undefined;
  if (isDocker && directory !== "") throw new UsageError("--directory and --image cannot be combined");
  if (!isDocker && command.length === 0)
    throw new UsageError("no command given; usage: rollcall run -- COMMAND [ARGUMENTS]");
  return create(JobSpecSchema, {
    name: options.name ?? nameFor(isDocker ? image : (command[0] ?? "")),
    type: JobType.BATCH,
    count: 1,
    selector: checkedSelector("selector", selector),
    constraints: { node, gpuModel },
    resources: {
      millicores: read("cores", options.cores, readCores),
      memoryBytes: BigInt(read("memory", options.memory, readByteCount)),
      diskBytes: BigInt(read("disk", options.disk, readByteCount)),
      gpus: gpus === undefined ? 0 : parseCount("gpus", gpus, 0),
    },
    task: isDocker
      ? { case: "docker", value: { image, command: [...command], env, user } }
      : { case: "process", value: { command: [...command], env, directory, user } },
    // Do not replace a lost execution, because the caller decides whether to run the command again.
    loss: { noReplace: true },
    retry: { attempts: 0 },
    ...duration("queueTimeout", "queue-timeout", options.queueTimeout),
    ...duration("maxRunTime", "max-run-time", options.maxRunTime),
  });
}

/** The name of a job, such as "python3-4f3a2b1c": the program, and a random suffix. */
function nameFor(program: string): string {
  const plain = basename(program)
    .replaceAll(/[^A-Za-z0-9._-]/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "");
  return `${plain.slice(0, 40) || "run"}-${randomBytes(4).toString("hex")}`;
}

function parseVariable(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw new UsageError(`cannot use '${text}' as env value, should be NAME=VALUE`);
}

function read(option: string, text: string | undefined, readValue: (node: Scalar) => Read<number>): number {
  if (text === undefined) return 0;
  const value = readValue(new Scalar(text));
  if (value.ok) return value.value;
  throw new UsageError(`cannot use '${text}' as ${option} value: ${value.message}`);
}

function duration(field: "queueTimeout" | "maxRunTime", option: string, text: string | undefined) {
  return text === undefined ? {} : { [field]: durationFromMs(parseDurationMs(option, text)) };
}

/** How a command ended. */
interface RunEnd {
  readonly execution: Execution;
  /** Whether the job has completed, so its execution exited with 0. */
  readonly hasCompleted: boolean;
  /** Why the command's output could not be read to the end; null if all of it was read. */
  readonly unread: string | null;
}

/** One run of a job. Executions of other runs belong to earlier commands with the same name. */
interface SubmittedRun extends Pick<Job, "version" | "run"> {
  readonly name: string;
}

function runOf(name: string, job: Job | undefined): SubmittedRun {
  if (job === undefined) throw new Failure(`the control plane accepted job ${name}, but did not return it`);
  return { name, version: job.version, run: job.run };
}

/** Report where the command runs, and wait for the job to end. */
async function waitForEnd(
  shell: Shell,
  control: ControlPlane,
  client: JobClient,
  submitted: SubmittedRun,
): Promise<RunEnd> {
  const { name } = submitted;
  const over = new AbortController();
  const copy = copyOutput(shell, control);
  let output: Promise<string | null> | null = null;
  const write = (executionId: string) => {
    output ??= copy(executionId);
    return output;
  };
  const telling = tellExecutions(shell, control, client, { ...submitted, over: over.signal, write });
  try {
    for await (const job of watchJob(shell, control, client, name, { hasBegun: true })) {
      if (job.version < submitted.version || job.run < submitted.run) continue;
      if (isOutdated(submitted, job)) throw new Failure(`job ${name} was submitted again before the command ended`);
      if (job.state === JobState.ACTIVE) continue;
      const execution = await newestExecution(shell, control, client, name);
      if (execution === undefined || isOutdated(execution, submitted))
        throw new Failure(await whyNotRun(client, name, job.message));
      const end = { execution, hasCompleted: job.state === JobState.COMPLETED };
      if (!hasOutput(execution)) return { ...end, unread: null };
      const wasEarly = output !== null;
      const unread = await write(execution.id);
      // If reading failed while the command ran, read again, because the cause, such as too many readers, may be gone.
      return { ...end, unread: wasEarly && unread !== null ? await copy(execution.id) : unread };
    }
    throw new Failure(`the watch of job ${name} ended before the job`);
  } finally {
    over.abort();
    await telling;
  }
}

/**
 * Read the newest execution of a job. Retries after transient failures, as a watch does, because the command has
 * already ended.
 */
async function newestExecution(
  shell: Shell,
  control: ControlPlane,
  client: JobClient,
  job: string,
): Promise<Execution | undefined> {
  const answers = keepWatching({
    ...{ control, shell, hasBegun: true, at: "scheduler", what: "read how the command ended" },
    open: async function* ({ signal }) {
      yield await client.listExecutions({ job, pageSize: 1 }, { signal });
    },
  });
  for await (const { executions } of answers) return executions[0];
  return undefined;
}

/** The context of a running command. */
interface ToldRun extends SubmittedRun {
  /** Aborts when the command has ended. */
  readonly over: AbortSignal;
  /** Copy an execution's output, once. */
  readonly write: (executionId: string) => Promise<unknown>;
}

/** Report on standard error where the command runs, and copy its output. */
async function tellExecutions(
  shell: Shell,
  control: ControlPlane,
  client: JobClient,
  { name, over, write, ...submitted }: ToldRun,
): Promise<void> {
  const messages = keepWatching({
    ...{ control, at: "scheduler", what: `watch the executions of job ${name}` },
    // Do not report broken connections here, because the watch of the job reports them.
    shell: { ...shell, interrupted: AbortSignal.any([over, shell.interrupted]), err: SILENT_SINK },
    open: (call) => client.watchExecutions({ job: name }, call),
  });
  let told = "";
  try {
    for await (const { executions } of messages) {
      for (const execution of executions) {
        if (isOutdated(execution, submitted)) continue;
        if (hasOutput(execution)) void write(execution.id);
        const { id, nodeId, state } = execution;
        const line = `${printable(`${name}: ${executionStateWord(state)} on node ${nodeId}, execution ${id}`)}\n`;
        if (line !== told) shell.err.write(line);
        told = line;
      }
    }
  } catch {
    // Ignore errors. This watch ends when the job ends, and the watch of the job reports any other failure.
  }
}

/**
 * Returns a function that copies the command's output to its end, or from where the previous call stopped. The
 * function resolves to the reason why output is missing; null if no output is missing.
 */
function copyOutput(shell: Shell, control: ControlPlane): (executionId: string) => Promise<string | null> {
  const look = () => ({ prefix: null, hasTime: false });
  const writers = new Map([
    [OutputStream.STDOUT, new OutputWriter(new SharedSink(shell.out), look)],
    [OutputStream.STDERR, new OutputWriter(new SharedSink(shell.err), look)],
  ]);
  const positions = new Map();
  let missing = 0n;
  return async (executionId) => {
    const wanted = { executionId, follow: true, tailLines: 0, since: null, hasTimes: false };
    try {
      await readOutput(shell, control, wanted, {
        ...{ writers, positions, isPatient: true, onUnknownTime: () => {} },
        onGap: (stream, gap) => {
          missing += gap.bytes;
          shell.err.write(`${gapWords(executionId, stream, gap)}\n`);
        },
      });
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
    if (missing === 0n) return null;
    const bytes = missing.toLocaleString("en-US");
    return `${bytes} bytes of the command's output are missing: it wrote faster than its output was read`;
  };
}

async function whyNotRun(client: JobClient, name: string, message: string): Promise<string> {
  const refusals = await client.explainExecution({ subject: { case: "job", value: name } }).then(
    (answer) => answer.refusals,
    () => [],
  );
  const lines = refusalLines(refusals, null).map((line) => `  ${printable(line)}`);
  return [`the command did not run${message === "" ? "" : `: ${printable(message)}`}`, ...lines].join("\n");
}

/**
 * The command's exit code by the convention of shells: 128 plus the signal's number if a signal ended it. A command
 * that was stopped from outside, for example at its deadline, never gets 0, even if it handled the signal and exited
 * with 0.
 *
 * @param hasCompleted whether the job has completed, whatever state its node has reported since
 */
export function exitCodeOf(execution: Execution, hasCompleted = false): number {
  if (hasCompleted) return 0;
  const { state, reason } = execution;
  const observation = isEndSeen(reason) ? execution.observation : undefined;
  if (state === ExecutionState.COMPLETED) return 0;
  if (observation?.exitCode !== undefined && observation.exitCode !== 0) return observation.exitCode;
  const signals: Readonly<Record<string, number>> = constants.signals;
  const signal = signals[observation?.signal ?? ""];
  if (signal !== undefined) return 128 + signal;
  return state === ExecutionState.KILLED_OOM ? 128 + constants.signals.SIGKILL : NOT_KNOWN;
}

function endLine(execution: Execution): string {
  const { job, nodeId, state } = execution;
  const how = endWords(execution);
  return printable(`${job}: ${stateWords(executionStateWord(state))} on node ${nodeId}${how === "" ? "" : `: ${how}`}`);
}

/**
 * Stop the job after Ctrl-C, which also ends the command. The calls of an interrupted shell are cancelled, so this
 * call gets a separate signal.
 */
async function stopRun(shell: Shell, options: RunOptions & Parameters<typeof reachControlPlane>[1], name: string) {
  const client = reachControlPlane({ ...shell, interrupted: new AbortController().signal }, options).client(
    "scheduler",
    JobService,
  );
  shell.err.write(`stopping job ${name}\n`);
  await client.stopJob({ name, reason: "interrupted" }).catch((error: unknown) => {
    if (JOB_IS_STOPPED.has(reasonIn(error))) return;
    shell.err.write(`failed to stop job ${name}; run \`rollcall job stop ${name}\`\n`);
  });
}
