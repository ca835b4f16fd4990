import { Code, ConnectError } from "@connectrpc/connect";
import { OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { type Execution, type Job, JobService, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { Failure, parseCount, parseMoment, spanIn } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import { choosePaint } from "../output/style.ts";
import type { Shell } from "../shell.ts";
import { followExecutions, type LogSubject } from "./follow-executions.ts";
import { LogScreen } from "./log-screen.ts";
import { OutputLabels } from "./output-labels.ts";
import type { Since } from "./read-output.ts";
import { EXECUTION_ID, hasOutput, isEnded } from "./words.ts";

/** The options of `job logs`. */
export interface LogsOptions {
  readonly follow?: boolean;
  readonly stdout?: boolean;
  readonly stderr?: boolean;
  readonly tail?: string;
  readonly since?: string;
  readonly timestamps?: boolean;
}

/** Maximum number of executions of a job to show, newest first. */
const MOST_SHOWN = 100;
/** The largest count that the uint32 field can hold. */
const MOST_LINES = 0xffff_ffff;

/** `job logs JOB|EXECUTION`: print the output of a job's executions, or of one execution. */
export const jobLogs: Verb<LogsOptions> = async ({ shell, args, options }) => {
  outputFormat(options, ["table"]);
  const [name = ""] = args;
  const { follow = false, stdout = false, stderr = false, tail, since, timestamps = false } = options;
  const wanted = {
    ...{ follow, hasTimes: timestamps, tailLines: tail === undefined ? 0 : lineCount(tail) },
    since: since === undefined ? null : sinceOf(shell, since),
  };
  const streams = [
    ...(stdout || !stderr ? [OutputStream.STDOUT] : []),
    ...(stderr || !stdout ? [OutputStream.STDERR] : []),
  ];
  const control = reachControlPlane(shell, options);
  const subject = await subjectOf(control, name);
  const screen = new LogScreen(shell, control, {
    ...{ streams, wanted, labels: new OutputLabels(subject.job, isPerNode(subject.known)) },
    paints: { out: choosePaint(shell, options), err: choosePaint({ ...shell, out: shell.err }, options) },
  });
  if (subject.isOlder) screen.note(`only the newest ${MOST_SHOWN} executions of job ${subject.job} are shown`);
  if (follow && subject.known?.state === JobState.ACTIVE) await followExecutions(shell, control, subject, screen);
  else await showExecutions(subject.executions, screen);
  screen.finish();
};

function lineCount(text: string): number {
  return Math.min(MOST_LINES, parseCount("tail", text, 1));
}

/** Parse --since. An age is sent as an age, because it means the same on a node whose clock differs. */
function sinceOf(shell: Shell, text: string): Since {
  const ms = spanIn(text);
  return ms === null ? { kind: "time", atMs: parseMoment("since", text, shell.wallMs()) } : { kind: "age", ms };
}

function isPerNode(job: Job | null): boolean {
  return job?.spec?.type === JobType.DAEMON || job?.spec?.type === JobType.OPS;
}

/** The executions of a job's current run, and unfinished ones of earlier runs; or one execution by its id. */
async function subjectOf(control: ControlPlane, name: string): Promise<LogSubject> {
  const client = control.client("scheduler", JobService);
  return control.attempt("scheduler", `find the executions of ${name}`, async () => {
    const { executions, nextPageToken } = await client.listExecutions({ job: name, pageSize: MOST_SHOWN });
    if (executions.length > 0) {
      const known = await client.getJob({ name }).then(
        ({ job }) => job ?? null,
        (error: unknown) => absent(error, null),
      );
      const shown = executions.filter((one) => known === null || one.run >= known.run || !isEnded(one));
      const isOlder = nextPageToken !== "" && shown.length === executions.length;
      return { job: name, known, executions: shown.reverse(), isOlder };
    }
    if (EXECUTION_ID.test(name)) {
      const { execution } = await client
        .getExecution({ execution: name, allowPrefix: true })
        .catch((error: unknown) => absent(error, { execution: undefined }));
      if (execution !== undefined) {
        return { job: execution.job, known: null, executions: [execution], isOlder: false };
      }
    }
    // Call getJob(), which throws if the job does not exist. A job that exists may have no execution.
    await client.getJob({ name });
    throw new Failure(`job ${name} has no execution yet; \`rollcall job why ${name}\` shows why`);
  });
}

function absent<T>(error: unknown, instead: T): T {
  if (ConnectError.from(error).code === Code.NotFound) return instead;
  throw error;
}

/** Show one execution after the other. */
async function showExecutions(executions: readonly Execution[], screen: LogScreen): Promise<void> {
  // Read a single execution in any state, so that the user learns why it has no output.
  const shown = executions.length === 1 ? executions : executions.filter(hasOutput);
  if (shown.length === 0) throw new Failure("none of its executions has started yet; `rollcall job why` shows why");
  if (shown.length > 1) screen.usePrefixes(shown);
  for (const execution of shown) await screen.show(execution);
}
