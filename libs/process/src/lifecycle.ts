import { type Clock, systemClock } from "./clock.ts";
import type { Logger } from "./logging.ts";
import { STRAY_SIGNALS } from "./stray-signals.ts";

/** What runProcess needs of Node's `process`; callers pass `process` itself. */
export interface ProcessLike {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  exit(code: number): void;
}

/** What was started. */
export interface Running {
  /** End in order: stop taking work, finish what is under way, release resources. */
  close(): Promise<void>;
  /** Settles when it ended by itself; a rejection ends the process with code 1. Absent when it never does. */
  readonly done?: Promise<void>;
}

/**
 * A start that cannot succeed as things are configured. Its message says what is wrong and what to do, so it is logged
 * in one line, without a stack.
 */
export class StartError extends Error {
  override readonly name = "StartError";
}

export interface RunOptions {
  /** Start everything. The signal aborts when the process is told to end while it still starts. */
  start(signal: AbortSignal): Promise<Running>;
  readonly process: ProcessLike;
  readonly log: Logger;
  /** How long closing may take before the process is ended anyway, with code 1. Default 15 s. */
  readonly shutdownDeadlineMs?: number;
  /** Read again what can change while the process runs, such as its certificate. SIGHUP asks for it. */
  reload?(): Promise<void>;
  /**
   * Whether the process belongs to a terminal. SIGHUP then says that the terminal was closed, and ends the process in
   * order. Default false: SIGHUP is a request to reload.
   */
  readonly hasTerminal?: boolean;
  /** By which signals are told apart. Default the system's. */
  readonly clock?: Pick<Clock, "nowMs">;
}

/**
 * A supervisor may send its signal to a whole group of processes, and one of them may pass it on, as `timeout make run`
 * does. What comes within this time of the first signal is that same signal; a person who loses patience takes longer.
 */
const SAME_SIGNAL_MS = 1_000;

/**
 * Run until SIGTERM, SIGINT or SIGQUIT, then close within the deadline; a second signal, at least a second after the
 * first, ends the process at once. SIGHUP reloads, see RunOptions; other signals that would end the process are logged
 * and ignored. Resolves to the exit code: 0 after an orderly end, 1 after a failure. The caller exits with it.
 */
export async function runProcess(options: RunOptions): Promise<number> {
  const { process, log, clock = systemClock } = options;
  const ending = new AbortController();
  let firstAtMs = 0;
  const onSignal = (name: unknown) => {
    if (ending.signal.aborted) {
      if (clock.nowMs() - firstAtMs < SAME_SIGNAL_MS) {
        log.info({ signal: name }, "ending already");
        return;
      }
      log.warn({ signal: name }, "second signal, ending at once");
      process.exit(130);
      return;
    }
    firstAtMs = clock.nowMs();
    log.info({ signal: name }, "ending");
    ending.abort(new Error(`ended by ${String(name)}`));
  };
  const onHangup = (name: unknown) => {
    if (options.hasTerminal) {
      // The shell and the kernel both send it. Nobody is left to lose patience.
      if (!ending.signal.aborted) onSignal(name);
      return;
    }
    // A service manager may send it along with SIGTERM.
    if (ending.signal.aborted) log.info({ signal: name }, "ending already");
    else void reloadOn(name, options);
  };
  const onStray = (name: unknown) => log.warn({ signal: name }, "signal ignored");
  // After an uncaught error the process is in an unknown state: say so, and end it.
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

/** A start that is told to end may take as long as a close, no longer. */
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
    log.error({ deadline_ms: deadlineMs }, "start did not end when told to");
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
    if (outcome === LATE) log.error({ deadline_ms: deadlineMs }, "closing took too long");
    else log.info({}, "ended");
    return outcome !== LATE;
  } catch (error) {
    log.error({ err: error }, "closing failed");
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
