import { type ChildProcess, spawn } from "node:child_process";
import { until } from "../../../libs/testkit/src/until.ts";

const PATIENCE_MS = 180_000;

/** A running program of a package, or a running program that runs one. */
export interface RunningProgram {
  /** Wait until the program has printed a text. Rejects if the program exits first. */
  prints(text: string): Promise<void>;
  /** Stop the program and everything that it started, and wait until all of it has exited. */
  end(): Promise<void>;
}

/** Start a program with only this environment. */
export function startProgram(
  program: string,
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): RunningProgram {
  // Use a separate process group, so that it can be stopped as a whole. A shell runs the commands that are
  // printed for people.
  return watchProgram(spawn(program, words, { env, stdio: ["ignore", "pipe", "pipe"], detached: true }));
}

/** Follow the output of a process. */
export function watchProgram(child: ChildProcess): RunningProgram {
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  }
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  return {
    prints: async (text) => {
      await until(`"${text}"`, () => printed.includes(text) || hasEnded(), PATIENCE_MS).catch(() => false);
      if (!printed.includes(text)) throw new Error(`it did not print "${text}":\n${printed}`);
    },
    end: async () => {
      if (!hasEnded()) process.kill(-(child.pid ?? 0), "SIGTERM");
      await until(`the end of process ${child.pid}\n${printed}`, hasEnded, PATIENCE_MS);
    },
  };
}
