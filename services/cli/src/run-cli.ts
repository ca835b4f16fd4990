import { CommanderError } from "commander";
import { DONE, FAILED, INTERRUPTED, MISUSED } from "./exit-codes.ts";
import { Exit, Failure, failureText, UsageError } from "./failure.ts";
import type { Parts } from "./parts.ts";
import { createProgram } from "./program.ts";
import type { Shell } from "./shell.ts";

/**
 * Run one command line. Returns the exit code: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted, or what a
 * verb says.
 */
export async function runCli(shell: Shell, parts: Parts): Promise<number> {
  const code = await runWords(shell, parts);
  try {
    await shell.out.finish();
    await shell.err.finish();
    return code;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // No use where it is standard error that cannot be written.
    shell.err.write(`${error.message}\n`);
    return code === DONE || code === INTERRUPTED ? FAILED : code;
  }
}

async function runWords(shell: Shell, parts: Parts): Promise<number> {
  const [first, ...rest] = shell.args;
  if (first === "__complete") {
    const { answerCompletion } = await import("./completion/complete.ts");
    await answerCompletion(rest, shell, parts);
    return DONE;
  }
  const helped = first === "help" ? parts.verbs.find(({ name }) => name === rest[0]) : undefined;
  if (helped !== undefined) return helped.run(["--help"]);
  const foreign = parts.verbs.find(({ name }) => name === first);
  if (foreign !== undefined) return foreign.run(rest);
  try {
    const program = await createProgram(shell, parts, shell.args);
    await program.parseAsync(shell.args, { from: "user" });
    // A verb that watches returns when it is interrupted; that is how it ends, but not by itself.
    return shell.interrupted.aborted ? INTERRUPTED : DONE;
  } catch (error) {
    return report(error, shell);
  }
}

async function report(error: unknown, shell: Shell): Promise<number> {
  // Commander has written its own message; help that was asked for is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : MISUSED;
  if (shell.interrupted.aborted) {
    const isUnwritten = shell.interrupted.reason instanceof Failure;
    return isUnwritten && error instanceof Exit ? error.code : INTERRUPTED;
  }
  if (error instanceof UsageError) {
    const { printable } = await import("./output/text.ts");
    // One line for each problem of a configuration.
    const lines = error.message.split("\n").map((line) => `${printable(line)}\n`);
    shell.err.write(lines.join(""));
    return MISUSED;
  }
  if (error instanceof Exit) {
    if (error.message !== "") shell.err.write(`${error.message}\n`);
    return error.code;
  }
  shell.err.write(`${failureText(error)}\n`);
  return FAILED;
}
