import { type ChildProcess, spawn } from "node:child_process";
import { until } from "../../../libs/testkit/src/until.ts";

const PATIENCE_MS = 180_000;

/** A program that a package brought, or that runs one. */
export interface RunningProgram {
  /** Wait until it has printed a text. Rejects when it ends without it. */
  prints(text: string): Promise<void>;
  /** Ask it to end, with what it has started, and wait until it has. */
  end(): Promise<void>;
}

/** Start a program with this environment and nothing of the test's own. */
export function startProgram(
  program: string,
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): RunningProgram {
  // A group of its own, which ends as one: what is printed for people is run by a shell.
  return watchProgram(spawn(program, words, { env, stdio: ["ignore", "pipe", "pipe"], detached: true }));
}

/** Follow what a process prints. */
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
