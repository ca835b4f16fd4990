import { type Command, CommanderError } from "commander";
import { DONE, FAILED, INTERRUPTED, MISUSED, UNREACHED } from "./exit-codes.ts";
import { Exit, Failure, failureText, Unreached, UsageError } from "./failure.ts";
import type { Parts } from "./parts.ts";
import { createProgram, nounIn, optionsOfCommand, withStandardVerb } from "./program.ts";
import { type Shell, SILENT_SINK } from "./shell.ts";

/**
 * Run one command line. Returns the exit code: 0 done, 1 refused or failed, 2 wrong usage, 3 the control plane could
 * not be reached, 130 interrupted, or a code specific to the verb.
 */
export async function runCli(shell: Shell, parts: Parts): Promise<number> {
  const code = await runWords(shell, parts);
  try {
    await shell.out.finish();
    await shell.err.finish();
    return code;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // This write has no effect if standard error itself is broken.
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
  if (first?.startsWith("-")) {
    // Such a verb parses options itself, so it gets those before its name as well.
    const name = nounIn(shell.args, shell);
    const later = parts.verbs.find((verb) => verb.name === name);
    const at = shell.args.indexOf(name ?? "");
    if (later !== undefined) return later.run([...shell.args.slice(at + 1), ...shell.args.slice(0, at)]);
  }
  let program: Command | null = null;
  try {
    const words = withStandardVerb(shell.args, shell);
    program = await createProgram(shell, parts, words, (more) => runAgain(shell, parts, more));
    await program.parseAsync(words, { from: "user" });
    // Report an interruption by the exit code, because an interrupted watch returns normally.
    return shell.interrupted.aborted ? INTERRUPTED : DONE;
  } catch (error) {
    return report(error, shell, program);
  }
}

/** Run another command line, and record what it writes. */
async function runAgain(shell: Shell, parts: Parts, args: readonly string[]) {
  const { recordingSink } = await import("./output/recording-sink.ts");
  const [out, err] = [recordingSink(SILENT_SINK), recordingSink(SILENT_SINK)];
  const code = await runWords({ ...shell, args, out, err, ask: null }, parts);
  return { code, out: out.text(), err: err.text() };
}

async function report(error: unknown, shell: Shell, program: Command | null): Promise<number> {
  if (error instanceof CommanderError) {
    // Requested help is not an error.
    if (error.exitCode === 0) return DONE;
    await tellMisuse(error, shell, program);
    return MISUSED;
  }
  if (shell.interrupted.aborted) {
    const isUnwritten = shell.interrupted.reason instanceof Failure;
    return isUnwritten && error instanceof Exit ? error.code : INTERRUPTED;
  }
  if (error instanceof UsageError) {
    const { printable } = await import("./output/text.ts");
    // Print one line for each problem of a configuration.
    const lines = error.message.split("\n").map((line) => `${printable(line)}\n`);
    await tell(lines.join(""), shell);
    return MISUSED;
  }
  if (error instanceof Exit) {
    if (error.message !== "") await tell(`${error.message}\n`, shell);
    return error.code;
  }
  await tell(`${failureText(error)}\n`, shell);
  return error instanceof Unreached ? UNREACHED : FAILED;
}

/** Report wrong usage, with the command or the option to use if the unknown one is known from another program. */
async function tellMisuse({ code, message }: CommanderError, shell: Shell, program: Command | null): Promise<void> {
  // Commander has printed the help if a command lacks its verb, and the error has no message then.
  if (!message.startsWith("error:")) return;
  const [, kind, unknown = ""] = /unknown (command|option) '(.*?)'/.exec(message) ?? [];
  let hint: string | null = null;
  if (kind === "command") {
    const { foreignHint } = await import("./habits/foreign-words.ts");
    hint = foreignHint(shell.args, unknown);
  } else if (kind === "option" && program !== null) {
    const { optionHint } = await import("./habits/option-hints.ts");
    hint = optionHint(unknown, optionsOfCommand(program, withStandardVerb(shell.args, shell)));
  }
  // An option with the same meaning is better than one with a similar spelling.
  const isGuess = hint !== null && code === "commander.unknownOption";
  await tell(`${isGuess ? message.replace(/\n\(Did you mean .*\)$/, "") : message}\n`, shell);
  if (hint !== null) await tell(`hint: ${hint}\n`, shell);
}

/** Write a message, wrapped on a terminal. */
async function tell(text: string, shell: Shell): Promise<void> {
  const { wrapped } = await import("./output/style.ts");
  shell.err.write(wrapped(text, shell));
}
