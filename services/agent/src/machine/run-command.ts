import { type ChildProcess, spawn } from "node:child_process";
import { errorCode } from "@rollcall/process";

/** The outcome of running a program. Nothing a program does makes `RunCommand` reject. */
export type CommandResult =
  | { readonly kind: "finished"; readonly exitCode: number; readonly stdout: string }
  /** There is no such program, or it may not be executed. */
  | { readonly kind: "missing" }
  /**
   * The program gave no complete answer: too slow, too long, an earlier run of it still hangs, or the system could not
   * start a process, for example for lack of descriptors.
   */
  | { readonly kind: "no-answer"; readonly cause: "timeout" | "overflow" | "busy" | "not-started" };

/** Run a program and collect what it prints to stdout. */
export type RunCommand = (program: string, args: readonly string[]) => Promise<CommandResult>;

/** Limits of a command runner. */
export interface CommandLimits {
  /** Milliseconds after which the program is killed and the caller told `timeout`. */
  readonly timeoutMs: number;
  /** Bytes of stdout after which the program is killed and the caller told `overflow`. */
  readonly outputLimitBytes: number;
}

/** The limits for the vendor tools that are asked about GPUs. */
const DEFAULT_COMMAND_LIMITS: CommandLimits = {
  // A driver that is busy, or loaded for this call, takes 10 s and more.
  timeoutMs: 30_000,
  outputLimitBytes: 1024 * 1024,
};

/**
 * Create a runner that runs each program at most once at a time.
 *
 * A call that comes while the same program is running waits for that run, at most `timeoutMs`. A program
 * that outlives even its kill (nvidia-smi blocks in the kernel when a GPU has failed) stays the one run of
 * its name: later calls are answered `busy`, so that no pile of unkillable processes builds up.
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
  /** Resolves when the process is really gone, which may be long after `result`. */
  readonly ended: Promise<void>;
}

/** Error codes of a program that does not exist here or cannot be executed. */
const MISSING: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "EACCES"]);

function notStarted(error: unknown): CommandResult {
  return MISSING.has(errorCode(error) ?? "") ? { kind: "missing" } : { kind: "no-answer", cause: "not-started" };
}

function startProgram(program: string, args: readonly string[], limits: CommandLimits): StartedProgram {
  let child: ChildProcess;
  try {
    // Its own group, so that what a wrapper script has started ends with it.
    child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"], detached: true });
  } catch (error) {
    // Other errors of a start come later, as an event.
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
      // A process that cannot die must not keep this one from ending.
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
    // It has ended meanwhile.
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

/** Run the first of several programs that exists here. */
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
