import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Execution,
  ExecutionState,
  type Job,
  JobService,
  JobState,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { failuresInRow, isFailure, isOutdated, ranMsOf } from "@rollcall/domain";
import type { ControlPlane } from "../client/control-plane.ts";
import { keepWatching } from "../client/keep-watching.ts";
import { Failure, failureOfAll, Unreached } from "../failure.ts";
import { showing } from "../output/progress.ts";
import { widthOf } from "../output/style.ts";
import { counted, printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";
import { waitLines } from "../waits.ts";
import type { JobClient } from "./submit.ts";
import { countWords, endSentence, refusalLines, runsToCompletion, updateWords } from "./words.ts";

/** The progress of a job towards its submitted version. */
export type Progress =
  | { readonly kind: "going-on"; readonly text: string }
  | { readonly kind: "done"; readonly text: string }
  | { readonly kind: "failed"; readonly text: string };

/**
 * Describe how far a job is. A service or daemon is done when the control plane reports it as rolled out and all its
 * executions are ready. A batch or ops job is done when it has completed.
 */
export function progressOf(job: Job): Progress {
  const { state, executions, update, wanted, message, rolledOut } = job;
  const text = [countWords(job), updateWords(job)].filter((part) => part !== "").join("; ");
  const why = message === "" ? "" : `: ${message}`;
  if (state === JobState.STOPPED) return { kind: "failed", text: "stopped" };
  if (state === JobState.FAILED) return { kind: "failed", text: `failed${why}` };
  if (state === JobState.COMPLETED) return { kind: "done", text: "completed" };
  if (update?.halted === true) return { kind: "failed", text: `update ${updateWords(job)}` };
  const { waiting = 0, ready = 0 } = executions ?? {};
  const isReady = !runsToCompletion(job) && update === undefined && ready >= wanted && waiting === 0;
  // Do not wait for the rollout of a job that wants no executions, because no execution can be ready for long enough.
  if (isReady && (rolledOut || wanted === 0)) return { kind: "done", text };
  return { kind: "going-on", text: isReady ? `${text}, but not yet for update.minReadyTime` : text };
}

/** Which job to follow. */
export interface FollowedJob {
  readonly name: string;
  /** The version that was submitted; null for the newest. */
  readonly version: number | null;
}

/**
 * Follow jobs one after the other, and report each result. If one fails, throws Failure after all have been followed.
 */
export async function followJobs(
  shell: Shell,
  control: ControlPlane,
  client: JobClient,
  jobs: readonly FollowedJob[],
): Promise<void> {
  const failures: Failure[] = [];
  for (const job of jobs) {
    try {
      await showing(shell, `follow job ${job.name}`, () => followJob(shell, control, client, job));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failureOfAll(failures);
}

/**
 * Report a job's progress on standard error until it is done. Throws Failure when it fails, is stopped, or gets another
 * version than the one that is followed.
 */
async function followJob(
  shell: Shell,
  control: ControlPlane,
  client: JobClient,
  { name, version }: FollowedJob,
): Promise<void> {
  const shown = printable(name);
  let told = "";
  let explained = false;
  for await (const job of watchJob(shell, control, client, name)) {
    if (version !== null && job.version < version) continue;
    if (version !== null && job.version > version) {
      if (job.undoneVersion === version) throw new Failure(await undoneText(client, job, version));
      throw new Failure(`job ${shown}: version ${job.version} was submitted while version ${version} was followed`);
    }
    const progress = await settledProgress(control, client, job);
    if (progress.kind === "failed") {
      const failed = await failedExecution(client, job);
      const why = failed === undefined ? "" : `\n  ${endSentence(failed)}`;
      throw new Failure(`job ${shown}: ${printable(progress.text)}${why}${revertHint(job)}`);
    }
    if (progress.kind === "done") {
      shell.out.write(`${shown}: ${printable(progress.text)}\n`);
      return;
    }
    if (progress.text !== told) shell.err.write(`${shown}: ${printable(progress.text)}\n`);
    told = progress.text;
    const isWaiting = (job.executions?.waiting ?? 0) > 0;
    // Explain a wait only when it starts, because the reasons why nodes are unsuitable change all the time.
    if (isWaiting && !explained) await explainWaiting(shell, client, name);
    explained = isWaiting;
  }
  throw new Unreached(`job ${shown}: the control plane ended the watch before the job finished`);
}

/** The command that undoes the update of a failed job; empty if no earlier version was ready. */
export function revertHint({ spec, version, readyVersion }: Pick<Job, "spec" | "version" | "readyVersion">): string {
  if (readyVersion === 0 || readyVersion === version) return "";
  return `\nhint: \`rollcall job revert ${printable(spec?.name ?? "JOB")}\` returns to version ${readyVersion}`;
}

/** Explain that the update to a version halted and that the job was reverted. The newest version has the reason. */
async function undoneText(client: JobClient, { spec, version: newest }: Job, version: number): Promise<string> {
  const name = spec?.name ?? "";
  const text = `job ${name}: the update to version ${version} halted, and version ${newest} reverted it`;
  try {
    const { versions } = await client.listJobVersions({ name, pageSize: 1 });
    const [last] = versions;
    return printable(last?.version === newest ? `${text}: ${last.reason}` : text);
  } catch {
    // Ignore the error, because the failure is reported even without the reason.
    return printable(text);
  }
}

/** A job's progress, including failures in a row and nodes without an execution, which the job's counts do not show. */
async function settledProgress(control: ControlPlane, client: JobClient, job: Job): Promise<Progress> {
  const progress = progressOf(job);
  const { spec, executions } = job;
  if (spec === undefined || runsToCompletion(job) || progress.kind === "failed") return progress;
  const { failed = 0, completed = 0, ready = 0 } = executions ?? {};
  if (failed + completed > 0) {
    const latest = await control.attempt("scheduler", `read the executions of job ${spec.name}`, () =>
      client.listExecutions({ job: spec.name, pageSize: MOST_READ }),
    );
    const why = givenUp(job, latest.executions);
    if (why !== null) return { kind: "failed", text: why };
  }
  if (progress.kind !== "done" || spec.type !== JobType.DAEMON) return progress;
  // Plan the job, because the counts of a daemon leave out nodes on which it has not been placed yet.
  const plan = await control.attempt("scheduler", `plan job ${spec.name}`, () => client.planJob({ spec }));
  const missing = plan.waiting + plan.executions.length - ready;
  return missing <= 0 ? progress : { kind: "going-on", text: `${progress.text}, ${missing} to be placed` };
}

const MOST_READ = 1_000;

/**
 * Number of failures in a row of one replica after which a service or daemon is reported as failed. The scheduler
 * continues to retry it. Without a limit of retries, following would never end.
 */
const MOST_FAILURES = 3;

const ENDED_BADLY: ReadonlyMap<ExecutionState, "FAILED" | "KILLED_OOM" | "COMPLETED"> = new Map([
  [ExecutionState.FAILED, "FAILED"],
  [ExecutionState.KILLED_OOM, "KILLED_OOM"],
  [ExecutionState.COMPLETED, "COMPLETED"],
] as const);

/** Why a service or daemon will not become ready, by the newest execution of each replica; null while it still can. */
export function givenUp(job: Job, newestFirst: readonly Execution[]): string | null {
  const { spec } = job;
  const most = Math.min(MOST_FAILURES, (spec?.retry?.attempts ?? MOST_FAILURES) + 1);
  const seen = new Set<number>();
  for (const execution of newestFirst) {
    const { index, reason } = execution;
    if (isOutdated(execution, job) || seen.has(index)) continue;
    seen.add(index);
    const state = ENDED_BADLY.get(execution.state);
    // Count failures as the scheduler does for services and daemons.
    const failures = failuresInRow(execution, ranMsIn(execution), "service");
    if (state === undefined || !isFailure({ state, reason }, "service") || failures < most) continue;
    const times = failures === 1 ? "once" : `${failures} times in a row`;
    return `replica ${index} failed ${times}`;
  }
  return null;
}

function ranMsIn({ createTime, endTime, observation }: Execution): number | null {
  const placed = { createdAtMs: msOf(createTime) ?? 0, endedAtMs: msOf(endTime) };
  const { startTime, endTime: observedEnd } = observation ?? {};
  return ranMsOf(placed, { startedAtMs: msOf(startTime), endedAtMs: msOf(observedEnd) });
}

function msOf(time: Timestamp | undefined): number | null {
  return time === undefined ? null : timestampMs(time);
}

/**
 * The newest execution whose failure made the job fail; undefined when there is none, or when it cannot be read. A
 * stopped job has none.
 */
async function failedExecution(client: JobClient, job: Job): Promise<Execution | undefined> {
  if (job.state === JobState.STOPPED) return undefined;
  const states = [...ENDED_BADLY.keys()].filter((state) => state !== ExecutionState.COMPLETED);
  try {
    const { executions } = await client.listExecutions({ job: job.spec?.name ?? "", states, pageSize: MOST_READ });
    return executions.find((execution) => !isOutdated(execution, job));
  } catch {
    // Ignore the error, because the failure is reported even without the execution.
    return undefined;
  }
}

/**
 * Yield a job, then each change of it. With `hasBegun`, the first stream is also opened again if it breaks. Throws
 * Failure when the job does not exist, or is deleted.
 */
export async function* watchJob(
  shell: Pick<Shell, "err" | "interrupted" | "streamLimits">,
  control: ControlPlane,
  client: JobClient,
  name: string,
  { hasBegun = false } = {},
): AsyncGenerator<Job> {
  const messages = keepWatching({
    ...{ control, shell, hasBegun, at: "scheduler", what: `watch job ${name}` },
    open: (call) => client.watchJobs({ name }, call),
  });
  let isThere = false;
  for await (const { jobs, snapshotDone, deletedJobs } of messages) {
    if (deletedJobs.includes(name)) throw new Failure(`job ${printable(name)} was deleted`);
    for (const job of jobs) {
      if (job.spec?.name !== name) continue;
      isThere = true;
      yield job;
    }
    // The reopened stream has repeated the complete state without the job, so the job was deleted during the break.
    if (snapshotDone && !isThere) throw new Failure(`job ${printable(name)} is gone`);
    if (snapshotDone) isThere = false;
  }
}

/** Maximum number of refusals to print. */
const MOST_NAMED = 5;

async function explainWaiting(shell: Shell, client: JobClient, name: string): Promise<void> {
  try {
    const { refusals } = await client.explainExecution({ subject: { case: "job", value: name } });
    const lines = refusalLines(refusals.slice(0, MOST_NAMED), null);
    shell.err.write(lines.map((line) => `  ${printable(line)}\n`).join(""));
  } catch {
    // Follow the job without the explanation. `job why` reports the error.
  }
}

/**
 * Wait until all executions of a stopped job have ended, and report on standard error those that have not. Throws
 * Failure when the job is started again in the meantime.
 */
export async function waitUntilEnded(
  shell: Pick<Shell, "out" | "err" | "interrupted" | "streamLimits" | "progress">,
  control: ControlPlane,
  name: string,
): Promise<void> {
  await showing(shell, `wait for job ${name} to end`, () => followEnd(shell, control, name));
}

async function followEnd(
  shell: Pick<Shell, "out" | "err" | "interrupted" | "streamLimits">,
  control: ControlPlane,
  name: string,
): Promise<void> {
  const client = control.client("scheduler", JobService);
  const shown = printable(name);
  let told = "";
  for await (const job of watchJob(shell, control, client, name)) {
    if (job.state === JobState.ACTIVE) throw new Failure(`job ${shown} was started again before it had ended`);
    const left = leftOf(job);
    if (left === 0) {
      shell.out.write(`${shown} has ended\n`);
      return;
    }
    const progress = `${shown}: ${counted(left, "execution has", "executions have")} not ended\n`;
    if (progress === told) continue;
    told = progress;
    shell.err.write(progress + (await heldText(client, name, widthOf(shell.err))));
  }
  throw new Unreached(`the control plane ended the watch before job ${shown} finished`);
}

function leftOf({ executions }: Job): number {
  const { pending = 0, running = 0, ready = 0, lost = 0, stopping = 0 } = executions ?? {};
  return pending + running + ready + lost + stopping;
}

/** What delays the executions that have not ended, one line each; empty when that cannot be read. */
async function heldText(client: JobClient, name: string, columns: number): Promise<string> {
  try {
    const { waits } = await client.explainExecution({ subject: { case: "job", value: name } });
    return waitLines(waits, columns)
      .map((line) => `${line}\n`)
      .join("");
  } catch {
    // Continue waiting without the explanation.
    return "";
  }
}
