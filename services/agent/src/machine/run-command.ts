import { type ChildProcess, spawn } from "node:child_process";
import { errorCode } from "@rollcall/process";

/** The result of running a program. `RunCommand` never rejects, whatever the program does. */
export type CommandResult =
  | { readonly kind: "finished"; readonly exitCode: number; readonly stdout: string }
  /** The program does not exist, or executing it is not permitted. */
  | { readonly kind: "missing" }
  /**
   * The program gave no complete answer: it was too slow or printed too much, an earlier run of it still hangs, or the
   * system could not start a process, for example for lack of descriptors.
   */
  | { readonly kind: "no-answer"; readonly cause: "timeout" | "overflow" | "busy" | "not-started" };

/** Run a program and collect its stdout. */
export type RunCommand = (program: string, args: readonly string[]) => Promise<CommandResult>;

export interface CommandLimits {
  /** Milliseconds after which the program is killed and the result is `timeout`. */
  readonly timeoutMs: number;
  /** Bytes of stdout after which the program is killed and the result is `overflow`. */
  readonly outputLimitBytes: number;
}

/** The limits for the vendor tools that report GPUs. */
const DEFAULT_COMMAND_LIMITS: CommandLimits = {
  // Allow more than 10 s, because a driver that is busy, or that is loaded for this call, can take that long.
  timeoutMs: 30_000,
  outputLimitBytes: 1024 * 1024,
};

/**
 * Create a runner that runs each program at most once at a time.
 *
 * A call for a program that is already running waits for that run, at most `timeoutMs`. A program that survives being
 * killed (nvidia-smi blocks in the kernel when a GPU has failed) remains the only run of that name: later calls return
 * `busy`, so that unkillable processes do not pile up.
 */
export function createCommandRunner(limits: CommandLimits = DEFAULT_COMMAND_LIMITS): RunCommand {
  const running = new Map<string, Promise<void>>();

  return async function runCommand(program, args) {
    for (let current = running.get(program); current; current = running.get(program)) {
      if (!(await endsWithin(current, limits.timeoutMs))) {
        return { kind: "no-answer", cause: "busy" };
      }
    }
    const { result, ended } = startProgram(program, args, limits);
    running.set(program, ended);
    void ended.then(() => running.delete(program));
    return result;
  };
}

interface StartedProgram {
  readonly result: Promise<CommandResult>;
  /** Resolves when the process no longer exists, which can be long after `result`. */
  readonly ended: Promise<void>;
}

/** Error codes for a program that does not exist on this machine or cannot be executed. */
const MISSING: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "EACCES"]);

function notStarted(error: unknown): CommandResult {
  return MISSING.has(errorCode(error) ?? "") ? { kind: "missing" } : { kind: "no-answer", cause: "not-started" };
}

function startProgram(program: string, args: readonly string[], limits: CommandLimits): StartedProgram {
  let child: ChildProcess;
  try {
    // Use a separate process group, so that the processes that a wrapper script starts are killed with it.
    child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"], detached: true });
  } catch (error) {
    // spawn() throws only some start errors. The others arrive later, as an event.
    return { result: Promise.resolve(notStarted(error)), ended: Promise.resolve() };
  }
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
    child.once("error", () => resolve());
  });
  return { result: collect(child, limits), ended };
}

function collect(child: ChildProcess, limits: CommandLimits): Promise<CommandResult> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (result: CommandResult): void => {
      clearTimeout(timer);
      resolve(result);
    };
    const giveUp = (cause: "timeout" | "overflow"): void => {
      settle({ kind: "no-answer", cause });
      killGroup(child);
      // Let go of the output, because a process that cannot be killed must not prevent this process from exiting.
      child.stdout?.destroy();
      child.unref();
    };
    const timer = setTimeout(() => giveUp("timeout"), limits.timeoutMs);
    child.stdout?.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > limits.outputLimitBytes) giveUp("overflow");
      else chunks.push(chunk);
    });
    child.once("error", (error) => settle(notStarted(error)));
    child.once("close", (code) =>
      settle({
        kind: "finished",
        exitCode: code ?? -1,
        stdout: Buffer.concat(chunks).toString("utf8"),
      }),
    );
  });
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // Ignore the error, because the process has already ended.
  }
}

function endsWithin(run: Promise<void>, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), limitMs);
    void run.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

/** Run the first of several programs that exists on this machine. */
export async function askProgram(
  machine: { readonly run: RunCommand },
  programs: readonly string[],
  args: readonly string[],
): Promise<CommandResult> {
  for (const program of programs) {
    const result = await machine.run(program, args);
    if (result.kind !== "missing") return result;
  }
  return { kind: "missing" };
}
