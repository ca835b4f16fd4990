import { type Clock, systemClock } from "./clock.ts";
import type { Logger } from "./logging.ts";
import { STRAY_SIGNALS } from "./stray-signals.ts";

/** The part of Node's `process` that runProcess uses; callers pass `process` itself. */
export interface ProcessLike {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  exit(code: number): void;
}

/** The running parts of a process. */
export interface Running {
  /** Shut down in order: stop accepting work, finish the work in progress, release resources. */
  close(): Promise<void>;
  /**
   * Settles when everything has ended without close(). A rejection makes the process exit with code 1. Absent when
   * that never happens.
   */
  readonly done?: Promise<void>;
}

/**
 * The process cannot start with the current configuration. The message states the problem and what to do, so it is
 * logged on one line without a stack.
 */
export class StartError extends Error {
  override readonly name = "StartError";
}

export interface RunOptions {
  /** Start everything. The signal aborts if the process is asked to exit during the start. */
  start(signal: AbortSignal): Promise<Running>;
  readonly process: ProcessLike;
  readonly log: Logger;
  /** Time limit for a shutdown, after which the process exits with code 1. Default 15 s. */
  readonly shutdownDeadlineMs?: number;
  /** Reload what can change while the process runs, such as a certificate. Called on SIGHUP. */
  reload?(): Promise<void>;
  /**
   * Whether the process has a terminal. If it does, SIGHUP means that the terminal was closed, and shuts the process
   * down. Default false: SIGHUP requests a reload.
   */
  readonly hasTerminal?: boolean;
  /** The clock that distinguishes repeated signals. Default: the system's clock. */
  readonly clock?: Pick<Clock, "nowMs">;
}

/**
 * Time from the first signal within which further signals count as the same signal, in milliseconds. A supervisor can
 * signal a whole process group, and a process of the group can forward the signal, as in `timeout make run`. A person
 * who loses patience takes longer.
 */
const SAME_SIGNAL_MS = 1_000;

/**
 * Run until SIGTERM, SIGINT or SIGQUIT, then shut down within the deadline. A second signal, at least a second after
 * the first, ends the process immediately. SIGHUP reloads, see RunOptions; other fatal signals are logged and ignored.
 * Resolves to the exit code: 0 after an orderly shutdown, 1 after a failure. The caller must exit with this code.
 */
export async function runProcess(options: RunOptions): Promise<number> {
  const { process, log, clock = systemClock } = options;
  const ending = new AbortController();
  let firstAtMs = 0;
  const onSignal = (name: unknown) => {
    if (ending.signal.aborted) {
      if (clock.nowMs() - firstAtMs < SAME_SIGNAL_MS) {
        log.info({ signal: name }, "already shutting down");
        return;
      }
      log.warn({ signal: name }, "second signal, exiting immediately");
      process.exit(130);
      return;
    }
    firstAtMs = clock.nowMs();
    log.info({ signal: name }, "stopping");
    ending.abort(new Error(`ended by ${String(name)}`));
  };
  const onHangup = (name: unknown) => {
    if (options.hasTerminal) {
      // Ignore a second SIGHUP during the shutdown: both the shell and the kernel send one, so it does not come from
      // an impatient person.
      if (!ending.signal.aborted) onSignal(name);
      return;
    }
    // Do not reload during a shutdown, because a service manager can send SIGHUP along with SIGTERM.
    if (ending.signal.aborted) log.info({ signal: name }, "already shutting down");
    else void reloadOn(name, options);
  };
  const onStray = (name: unknown) => log.warn({ signal: name }, "signal ignored");
  // Log an uncaught error and exit, because the state of the process is unknown.
  const onDefect = (error: unknown) => {
    log.fatal({ err: error }, "uncaught error");
    process.exit(1);
  };
  const listeners = [
    ["SIGTERM", onSignal],
    ["SIGINT", onSignal],
    ["SIGQUIT", onSignal],
    ["SIGHUP", onHangup],
    ...STRAY_SIGNALS.map((signal) => [signal, onStray] as const),
    ["uncaughtException", onDefect],
    ["unhandledRejection", onDefect],
  ] as const;
  for (const [event, listener] of listeners) process.on(event, listener);
  try {
    return await runUntilEnd(options, ending.signal);
  } finally {
    for (const [event, listener] of listeners) process.off(event, listener);
  }
}

async function reloadOn(signal: unknown, { reload, log }: RunOptions): Promise<void> {
  if (reload === undefined) {
    log.info({ signal }, "nothing to reload");
    return;
  }
  log.info({ signal }, "reloading");
  try {
    await reload();
  } catch (error) {
    log.error({ err: error }, "reloading failed");
  }
}

async function runUntilEnd(options: RunOptions, ending: AbortSignal): Promise<number> {
  const { log, shutdownDeadlineMs = 15_000 } = options;
  const started = await startWithin(options, ending, shutdownDeadlineMs);
  if (started === "cancelled") return 0;
  if (started === "failed") return 1;
  const failure = await Promise.race([
    aborted(ending).then(() => null),
    (started.done ?? new Promise<never>(() => {})).then(
      () => null,
      (error: unknown) => ({ error }),
    ),
  ]);
  if (failure !== null) log.fatal({ err: failure.error }, "failed");
  const closed = await closeWithin(started, shutdownDeadlineMs, log);
  return failure === null && closed ? 0 : 1;
}

/** Wait for the start. After a request to stop, the start can take as long as a shutdown. */
async function startWithin(
  { start, log }: RunOptions,
  ending: AbortSignal,
  deadlineMs: number,
): Promise<Running | "cancelled" | "failed"> {
  const over = new AbortController();
  try {
    const late = aborted(ending).then(() => timeout(deadlineMs, over.signal));
    const started = await Promise.race([start(ending), late]);
    if (started !== LATE) return started;
    log.error({ deadline_ms: deadlineMs }, "start did not stop in time");
    return "failed";
  } catch (error) {
    if (ending.aborted) return "cancelled";
    if (error instanceof StartError) log.fatal({ problem: error.message }, "cannot start");
    else log.fatal({ err: error }, "start failed");
    return "failed";
  } finally {
    over.abort();
  }
}

async function closeWithin(running: Running, deadlineMs: number, log: Logger): Promise<boolean> {
  const over = new AbortController();
  try {
    const outcome = await Promise.race([running.close(), timeout(deadlineMs, over.signal)]);
    if (outcome === LATE) log.error({ deadline_ms: deadlineMs }, "shutdown took too long");
    else log.info({}, "stopped");
    return outcome !== LATE;
  } catch (error) {
    log.error({ err: error }, "shutdown failed");
    return false;
  } finally {
    over.abort();
  }
}

const LATE = Symbol("late");

function timeout(ms: number, cancel: AbortSignal): Promise<typeof LATE> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(LATE), ms);
    cancel.addEventListener("abort", () => clearTimeout(timer), { once: true });
    if (cancel.aborted) clearTimeout(timer);
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
