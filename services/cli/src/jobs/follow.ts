import { setTimeout as sleep } from "node:timers/promises";
import { type Job, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { keepWatching } from "../client/keep-watching.ts";
import { Failure } from "../failure.ts";
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";
import type { JobClient } from "./submit.ts";
import { countWords, refusalLines, updateWords } from "./words.ts";

/** Where a job stands on its way to what was submitted. */
export type Progress =
  | { readonly kind: "going-on"; readonly text: string }
  | { readonly kind: "done"; readonly text: string }
  | { readonly kind: "failed"; readonly text: string };

/**
 * Tell how far a job is. A service or daemon is done when all of it is ready and no update goes on, a batch or ops job
 * when all of it has been started.
 */
export function progressOf(job: Job): Progress {
  const { state, executions, update, wanted, message, spec } = job;
  const text = [countWords(job), updateWords(job)].filter((part) => part !== "").join("; ");
  const why = message === "" ? "" : `: ${message}`;
  if (state === JobState.STOPPED) return { kind: "failed", text: "it was stopped" };
  if (state === JobState.FAILED) return { kind: "failed", text: `it failed${why}` };
  if (state === JobState.COMPLETED) return { kind: "done", text: "completed" };
  if (update?.halted === true) return { kind: "failed", text: `its update ${updateWords(job)}` };
  const { waiting = 0, pending = 0, ready = 0 } = executions ?? {};
  const isKept = spec?.type === JobType.SERVICE || spec?.type === JobType.DAEMON;
  const isDone = isKept ? update === undefined && ready >= wanted && waiting === 0 : waiting + pending === 0;
  return { kind: isDone ? "done" : "going-on", text };
}

/** Which job to follow, from which version on. */
export interface FollowedJob {
  readonly name: string;
  readonly version: number;
}

/** Say on standard error how far a job is, until it is done. Throws Failure when it fails or is stopped. */
export async function followJob(
  shell: Shell,
  control: ControlPlane,
  client: JobClient,
  { name, version }: FollowedJob,
): Promise<void> {
  const shown = printable(name);
  let told = "";
  let explained = false;
  for await (const job of watchJob(shell, control, client, name)) {
    if (job.version < version) continue;
    const progress = progressOf(job);
    if (progress.kind === "failed") throw new Failure(`job ${shown}: ${printable(progress.text)}`);
    if (progress.kind === "done") {
      shell.out.write(`${shown}: ${printable(progress.text)}\n`);
      return;
    }
    if (progress.text !== told) shell.err.write(`${shown}: ${printable(progress.text)}\n`);
    told = progress.text;
    const isWaiting = (job.executions?.waiting ?? 0) > 0;
    // Said once for each time that it waits: why nodes will not do changes all the time.
    if (isWaiting && !explained) await explainWaiting(shell, client, name);
    explained = isWaiting;
  }
}

/** A job as it is, then each change of it. Throws Failure when there is no such job any more. */
export async function* watchJob(
  shell: Pick<Shell, "err" | "interrupted">,
  control: ControlPlane,
  client: JobClient,
  name: string,
): AsyncGenerator<Job> {
  const messages = keepWatching({
    ...{ control, shell, at: "scheduler", what: `watch job ${name}` },
    open: (call) => client.watchJobs({ name }, call),
    pause: (ms, signal) => sleep(ms, undefined, { signal }),
  });
  let isThere = false;
  for await (const { jobs, snapshotDone } of messages) {
    for (const job of jobs) {
      if (job.spec?.name !== name) continue;
      isThere = true;
      yield job;
    }
    // A stream that is opened again begins with all there is.
    if (snapshotDone && !isThere) throw new Failure(`job ${printable(name)} is gone`);
    if (snapshotDone) isThere = false;
  }
}

/** Refusals that are named. */
const MOST_NAMED = 5;

async function explainWaiting(shell: Shell, client: JobClient, name: string): Promise<void> {
  try {
    const { refusals } = await client.explainExecution({ subject: { case: "job", value: name } });
    const lines = refusalLines(refusals.slice(0, MOST_NAMED), null);
    shell.err.write(lines.map((line) => `  ${printable(line)}\n`).join(""));
  } catch {
    // The job is followed all the same; `job why` says what is wrong.
  }
}
