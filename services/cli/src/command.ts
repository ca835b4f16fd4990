import { Command, type Option } from "commander";
import { type ContextSource, chooseContext } from "./contexts/choose-context.ts";
import { UsageError } from "./failure.ts";
import type { GlobalOptions, Verb } from "./invocation.ts";
import { wrap } from "./output/text.ts";
import type { Shell } from "./shell.ts";

/** Whether any option is one that adapted() translates. */
function hasFamiliar(options: object): boolean {
  const { watch, quiet, sortBy, headers, output }: Readonly<Record<string, unknown>> = { ...options };
  const isPath = typeof output === "string" && output.startsWith("jsonpath=");
  return watch === true || quiet === true || sortBy !== undefined || headers === false || isPath;
}

function takesLabels(command: Command): boolean {
  return command.options.some(({ long }) => long === "--labels");
}

/** Make a commander action of a verb. */
export function action<Options>(shell: Shell, verb: Verb<Options>): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    // Commander passes the arguments, the options and, always last, the command itself.
    const command = given.at(-1);
    if (!(command instanceof Command)) throw new TypeError("commander did not pass the command to its action");
    refuseEmptyValues(command);
    const options = command.optsWithGlobals<GlobalOptions & Options>();
    // Load the adapter only if it is needed, because most commands use none of these options.
    const isFamiliar = hasFamiliar(options) || (takesLabels(command) && "selector" in options);
    const run = isFamiliar ? (await import("./habits/adapt.ts")).adapted(verb, takesLabels(command)) : verb;
    const chosenContext = await chooseContext(shell, options);
    // Load the progress line only for people, because scripts do not see it.
    const shown = shell.err.isTerminal ? (await import("./output/progress.ts")).withProgress(shell) : shell;
    await run({ shell: shown, args: command.args, options: { ...options, chosenContext } });
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
    // Ignore errors, because a verb that needs no context must work even if the contexts file is broken.
    return null;
  }
}

/** Names of arguments that can be empty: free text, filters, and the words of a command. */
const CAN_BE_EMPTY: ReadonlySet<string> = new Set(["reason", "text", "words", "selector", "command", "next-token"]);

/** Refuse empty values, such as those of unset script variables: `job wait "$JOB"` would name no job. */
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

/** A verb that is loaded only when it is called, so that its noun starts fast. */
export function loaded<Options>(load: () => Promise<Verb<Options>>): Verb<Options> {
  return async (invocation) => (await load())(invocation);
}

/**
 * Print paragraphs after a command's help, wrapped to the terminal width. Lines that start with a blank are printed
 * unchanged.
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
    .option("--hide-header", "Leave out the headings")
    .option("--no-headers", "Same as --hide-header")
    .option("-q, --quiet", "Print only names, like --output name")
    .option("-w, --watch", "Print the list again every two seconds, until Ctrl-C");
}

/** Add --limit; `rest` describes the default. */
export function addLimit(command: Command, what: string, rest = "all"): Command {
  return command.option("--limit <count>", `Print at most this many ${what}; 0 for all (default: ${rest})`);
}

/** The options of a change: its reason, and a key that makes repeating the call harmless. */
export function addChangeOptions(command: Command): Command {
  return command.option("-m, --message <reason>", "Reason to store with the change").option(...REQUEST_ID);
}

/** --request-id, for `option()`. */
export const REQUEST_ID = [
  "--request-id <id>",
  "Idempotency key: repeating the same request changes nothing and returns the first result",
] as const;

/** --strict, for `option()`. */
export const STRICT = ["--strict", "Fail if there is nothing to change, instead of only reporting it"] as const;
