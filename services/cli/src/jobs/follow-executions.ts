import { type Execution, type Job, JobService, JobState } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { ControlPlane } from "../client/control-plane.ts";
import { keepWatching } from "../client/keep-watching.ts";
import { Failure } from "../failure.ts";
import { type Shell, SILENT_SINK } from "../shell.ts";
import { watchJob } from "./follow.ts";
import type { LogScreen } from "./log-screen.ts";
import { hasOutput } from "./words.ts";

/** Maximum number of executions whose output is read at a time; others wait until one of these ends. */
const MOST_READ = 50;

/** The executions whose output is shown. */
export interface LogSubject {
  /** Name of the job. */
  readonly job: string;
  /** The job; null when one execution is shown, or when the job no longer exists. */
  readonly known: Job | null;
  /** The executions, the oldest first. */
  readonly executions: readonly Execution[];
  /** Whether the job has older executions that are not listed. */
  readonly isOlder: boolean;
}

/** Show the output of a job's executions, including those that start later, until the job has ended. */
export async function followExecutions(
  shell: Shell,
  control: ControlPlane,
  { job: name, executions }: LogSubject,
  screen: LogScreen,
): Promise<void> {
  const client = control.client("scheduler", JobService);
  const readings = new Readings(screen);
  const started = executions.filter(hasOutput);
  if (started.length > 1) screen.usePrefixes(started);
  for (const execution of started) readings.start(execution);
  const known = new Set(executions.map(({ id }) => id));
  const first = executions[0]?.id ?? "";
  const over = new AbortController();
  const watching = (async () => {
    const messages = keepWatching({
      ...{ control, at: "scheduler", what: `watch the executions of job ${name}` },
      // Do not report broken connections here, because the watch of the job reports them.
      shell: { ...shell, interrupted: AbortSignal.any([over.signal, shell.interrupted]), err: SILENT_SINK },
      open: (call) => client.watchExecutions({ job: name }, call),
    });
    for await (const message of messages) {
      for (const execution of message.executions) {
        // Skip executions that are older than the first listed one.
        if (hasOutput(execution) && (known.has(execution.id) || execution.id > first)) readings.start(execution);
      }
    }
  })().catch(() => {
    // Ignore errors. This watch ends when the job ends, and the watch of the job reports any other failure.
  });
  try {
    for await (const { state } of watchJob(shell, control, client, name)) if (state !== JobState.ACTIVE) break;
    const latest = await control.attempt("scheduler", `find the executions of ${name}`, () =>
      client.listExecutions({ job: name, pageSize: 100 }),
    );
    for (const execution of latest.executions.reverse()) {
      if (hasOutput(execution) && (known.has(execution.id) || execution.id > first)) readings.start(execution);
    }
  } finally {
    over.abort();
    await watching;
    if (!shell.interrupted.aborted) await readings.ended();
  }
  if (readings.count === 0) throw new Failure(`no execution of job ${name} has started`);
}

/** Readings in progress, one for each execution. */
class Readings {
  readonly #screen: LogScreen;
  readonly #begun = new Set<string>();
  readonly #waiting: Execution[] = [];
  readonly #running = new Set<Promise<void>>();
  #hasWaited = false;
  #failure: unknown = null;

  constructor(screen: LogScreen) {
    this.#screen = screen;
  }

  /** Number of executions that have started or are waiting. */
  get count(): number {
    return this.#begun.size;
  }

  start(execution: Execution): void {
    if (this.#begun.has(execution.id)) return;
    this.#begun.add(execution.id);
    this.#waiting.push(execution);
    this.#next();
    if (this.#waiting.length === 0 || this.#hasWaited) return;
    this.#hasWaited = true;
    this.#screen.note(`following ${MOST_READ} executions at a time; others are shown when one of these ends`);
  }

  /** Wait until all readings have ended. Throws the error that ended one early. */
  async ended(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
    if (this.#failure !== null) throw this.#failure;
  }

  #next(): void {
    while (this.#running.size < MOST_READ) {
      const execution = this.#waiting.shift();
      if (execution === undefined) return;
      const reading: Promise<void> = this.#screen
        .show(execution, { isPatient: true })
        .catch((error: unknown) => {
          this.#failure ??= error;
        })
        .finally(() => {
          this.#running.delete(reading);
          this.#next();
        });
      this.#running.add(reading);
    }
  }
}
