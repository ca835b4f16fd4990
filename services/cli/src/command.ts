import { Command, type Option } from "commander";
import { type ContextSource, chooseContext } from "./contexts/choose-context.ts";
import { UsageError } from "./failure.ts";
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
    refuseEmptyValues(command);
    const options = command.optsWithGlobals<GlobalOptions & Options>();
    const chosenContext = await chooseContext(shell, options);
    await verb({ shell, args: command.args, options: { ...options, chosenContext } });
    const context = secureContext(chosenContext);
    if (context === null) return;
    const { refreshAuthority } = await import("./contexts/refresh-authority.ts");
    const serverName = options.tlsServerName || shell.env.ROLLCALL_TLS_SERVER_NAME || null;
    await refreshAuthority(shell, context, serverName);
  };
}

/** The context in use if it has an authority; null otherwise. */
function secureContext(chosenContext: ContextSource): ReturnType<ContextSource> {
  try {
    const chosen = chosenContext();
    return chosen !== null && chosen.context.caFile !== null ? chosen : null;
  } catch {
    // A verb that needs no context works with a broken file.
    return null;
  }
}

/** Placeholders of values that can be empty: free text, filters and the words of a command. */
const CAN_BE_EMPTY: ReadonlySet<string> = new Set(["reason", "text", "words", "selector", "command", "next-token"]);

/** Refuse values that are empty, as those of a script's variables that are not set: `job wait "$JOB"` names no job. */
function refuseEmptyValues(command: Command): void {
  for (const [index, argument] of command.registeredArguments.entries()) {
    const name = argument.name();
    const given = command.args.slice(index, argument.variadic ? undefined : index + 1);
    if (!CAN_BE_EMPTY.has(name) && given.some(isEmpty)) throw emptyValue(`<${name}>`);
  }
  for (let of: Command | null = command; of !== null; of = of.parent) {
    for (const { flags, long, name, attributeName } of of.options.map(describeOption)) {
      const placeholder = /[<[]([a-z-]+)/.exec(flags)?.[1] ?? "";
      if (CAN_BE_EMPTY.has(placeholder) || CAN_BE_EMPTY.has(name)) continue;
      if (of.getOptionValueSource(attributeName) !== "cli") continue;
      if ([of.getOptionValue(attributeName)].flat().some(isEmpty)) throw emptyValue(long);
    }
  }
}

function describeOption(option: Option) {
  return {
    flags: option.flags,
    long: option.long ?? option.flags,
    name: option.name(),
    attributeName: option.attributeName(),
  };
}

function isEmpty(value: unknown): boolean {
  return typeof value === "string" && value.trim() === "";
}

function emptyValue(what: string): UsageError {
  return new UsageError(`the value of ${what} is empty`);
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
