import { CommanderError } from "commander";
import { Failure, UsageError } from "./failure.ts";
import { printable } from "./output/text.ts";
import type { Parts } from "./parts.ts";
import { createProgram } from "./program.ts";
import type { Shell } from "./shell.ts";

/** Exit codes, as `rollcall --help` tells them. */
const DONE = 0;
const FAILED = 1;
const MISUSED = 2;
const INTERRUPTED = 130;

/** Run one command line. Answers the exit code: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted. */
export async function runCli(shell: Shell, parts: Parts): Promise<number> {
  const [first, ...rest] = shell.args;
  if (first === "__complete") {
    const { answerCompletion } = await import("./completion/answer.ts");
    await answerCompletion(rest, shell, parts);
    return DONE;
  }
  const helped = first === "help" ? parts.verbs.find(({ name }) => name === rest[0]) : undefined;
  if (helped !== undefined) return helped.run(["--help"]);
  const foreign = parts.verbs.find(({ name }) => name === first);
  if (foreign !== undefined) return foreign.run(rest);
  try {
    await parse(shell, parts);
    return DONE;
  } catch (error) {
    return report(error, shell);
  }
}

async function parse(shell: Shell, parts: Parts): Promise<void> {
  const program = createProgram(shell, parts);
  for (const command of [program, ...program.commands, ...program.commands.flatMap((it) => it.commands)]) {
    command.exitOverride().configureOutput({
      writeOut: (text) => shell.out.write(text),
      writeErr: (text) => shell.err.write(text),
      getOutHelpWidth: () => shell.out.columns() || 100,
      getErrHelpWidth: () => shell.err.columns() || 100,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  }
  await program.parseAsync(shell.args, { from: "user" });
}

function report(error: unknown, shell: Shell): number {
  // Commander has written its own message; help that was asked for is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : MISUSED;
  if (shell.interrupted.aborted) return INTERRUPTED;
  if (error instanceof UsageError) {
    shell.err.write(`${printable(error.message)}\n`);
    return MISUSED;
  }
  if (error instanceof Failure) {
    shell.err.write(`${error.message}\n`);
    return FAILED;
  }
  // A defect of this program: its stack is what a report needs.
  shell.err.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return FAILED;
}
