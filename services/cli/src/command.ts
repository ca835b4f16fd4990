import { Command } from "commander";
import { type ContextSource, chooseContext } from "./contexts/choose-context.ts";
import { wrap } from "./output/text.ts";
import type { Shell } from "./shell.ts";

/** The options of every verb that calls the API. */
export interface GlobalOptions {
  readonly server?: string;
  readonly registry?: string;
  readonly health?: string;
  readonly admin?: string;
  readonly scheduler?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly tlsServerName?: string;
  readonly output?: string;
  readonly timeout?: string;
  /** False with --no-color. */
  readonly color: boolean;
  /** --context. */
  readonly context?: string;
  /** The context in use; absent where none was looked for. */
  readonly chosenContext?: ContextSource;
}

/** One call of one verb. */
export interface Invocation<Options = unknown> {
  /** The process. */
  readonly shell: Shell;
  /** The verb's own words, without options. */
  readonly args: readonly string[];
  /** The options, the global ones included. */
  readonly options: GlobalOptions & Options;
}

/** What a verb does. It throws UsageError or Failure when it cannot. */
export type Verb<Options = unknown> = (invocation: Invocation<Options>) => Promise<void>;

/** Make a commander action of a verb. */
export function action<Options>(shell: Shell, verb: Verb<Options>): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    // Commander passes the arguments, the options and, always last, the command itself.
    const command = given.at(-1);
    if (!(command instanceof Command)) throw new TypeError("an action is called with its command");
    const options = command.optsWithGlobals<GlobalOptions & Options>();
    const chosenContext = await chooseContext(shell, options);
    await verb({ shell, args: command.args, options: { ...options, chosenContext } });
  };
}

/** A verb that is loaded when it is called, so that its noun starts fast. */
export function loaded<Options>(load: () => Promise<Verb<Options>>): Verb<Options> {
  return async (invocation) => (await load())(invocation);
}

/**
 * Print paragraphs after a command's help, wrapped to the terminal. Lines that begin with blanks are printed as they
 * are.
 */
export function addNotes(command: Command, ...paragraphs: readonly string[]): Command {
  return command.addHelpText("after", ({ error, command: of }) => {
    const output = of.configureOutput();
    const width = (error ? output.getErrHelpWidth?.() : output.getOutHelpWidth?.()) ?? 80;
    return `\n${paragraphs.map((it) => wrap(it, width)).join("\n\n")}`;
  });
}

/** Add the options that every listing takes. */
export function addListingOptions(command: Command): Command {
  return command
    .option("--wide", "Same as --output wide: every column, and long values in full")
    .option("--hide-header", "Leave out the headings");
}

/** Add --limit; `rest` tells how many there are by default. */
export function addLimit(command: Command, what: string, rest = "all"): Command {
  return command.option("--limit <count>", `Print at most this many ${what}; 0 is all (default: ${rest})`);
}

/** The options of a change: why, and the key that makes a repeat of the call harmless. */
export function addChangeOptions(command: Command): Command {
  return command.option("-m, --message <reason>", "Reason, for people; stored with the change").option(...REQUEST_ID);
}

/** --request-id, for `option()`. */
export const REQUEST_ID = [
  "--request-id <id>",
  "Idempotency key: a call with the id of an earlier one changes nothing and returns its answer",
] as const;

/** --strict, for `option()`. */
export const STRICT = ["--strict", "Fail when there is nothing to change, instead of saying so"] as const;
