import { Command, CommanderError } from "commander";
import { FIRST_VERBS, GROUPS, NOUNS, type Noun } from "./all-nouns.ts";
import { buildInfo, versionText } from "./build-info.ts";
import { addNotes } from "./command.ts";
import type { CommandOptions } from "./habits/option-hints.ts";
import { OPTIONS_NOTE } from "./help/format-help.ts";
import { addGlobalOptions } from "./help/global-options.ts";
import type { Parts, RunAgain } from "./parts.ts";
import { type Shell, SILENT_SINK } from "./shell.ts";

const EXIT_CODE_NOTE =
  "Exit codes: 0 done and all output written, 1 refused or failed, 2 wrong usage, 3 the control plane could not be " +
  "reached, 130 interrupted (Ctrl-C). `rollcall run` exits with the code of its command, or with 75 if it is " +
  "unknown. docs/reference/exit-codes.md lists the codes of every command.";

/**
 * The command line as a tree of commands. Only the noun that `words` names is complete; the others have only a name and
 * a description.
 */
export async function createProgram(
  shell: Shell,
  parts: Parts,
  words: readonly string[],
  again: RunAgain = cannotRunAgain,
): Promise<Command> {
  const program = addGlobalOptions(new Command("rollcall"), shell)
    .description(
      "A control plane for fleets of machines: it knows which nodes are connected, are healthy and can take work.",
    )
    .version(versionText(buildInfo()), "--version", "Print the version")
    .helpOption("-h, --help", "Show help")
    .commandsGroup(GROUPS.other)
    .helpCommand("help [command]", "Show help");
  addNotes(program, EXIT_CODE_NOTE, OPTIONS_NOTE);
  // List these verbs for help and completion only, because runCli runs them before commander sees the arguments.
  const list = (verbs: Parts["verbs"], group: keyof typeof GROUPS) => {
    for (const { name, usage, description } of verbs) {
      const command = program.command(`${name} ${usage}`.trim()).description(description).helpOption(false);
      command.helpGroup(GROUPS[group]);
    }
  };
  const isFirst = ({ name }: Parts["verbs"][number]) => FIRST_VERBS.has(name);
  list(parts.verbs.filter(isFirst), "start");
  const named = nounIn(words, shell);
  const define = async ({ name, description, group, load }: Noun) => {
    const command = program.command(name).description(description).helpGroup(GROUPS[group]);
    if (name !== named) return;
    (await load())(command, shell, parts, again);
    for (const verb of command.commands) verb.aliases(SYNONYMS[verb.name()] ?? []);
  };
  // Help shows groups in the order of their first command.
  const others = parts.verbs.filter((verb) => !isFirst(verb));
  for (const heading of Object.values(GROUPS)) {
    for (const noun of NOUNS) if (GROUPS[noun.group] === heading) await define(noun);
    if (heading === GROUPS.parts) list(others, "parts");
  }
  return program;
}

/** Other names of verbs, which are the same for every noun. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  list: ["ls"],
  describe: ["status", "show"],
  show: ["describe"],
  delete: ["rm"],
  executions: ["ps"],
};

const cannotRunAgain: RunAgain = () => Promise.reject(new TypeError("this program only describes its commands"));

/** The options of the command that the words name, with those of all commands, and how to call it. */
export function optionsOfCommand(program: Command, words: readonly string[]): CommandOptions {
  let command = program;
  const path = [program.name()];
  for (
    let rest = program.parseOptions([...words]);
    ;
    rest = command.parseOptions([...rest.operands.slice(1), ...rest.unknown])
  ) {
    const [word = ""] = rest.operands;
    const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (next === undefined) break;
    command = next;
    path.push(next.name());
  }
  const takers = [command, ...(command === program ? [] : [program])];
  const options = takers.flatMap((taker) => taker.options.flatMap(({ long }) => long?.replace(/^--/, "") ?? []));
  const args = command.registeredArguments.map((one) => {
    const name = `${one.name()}${one.variadic ? "..." : ""}`;
    return one.required ? `<${name}>` : `[${name}]`;
  });
  return { usage: [...path, ...args].join(" "), options };
}

/** The noun that commander will find after the global options; undefined when there is none. */
export function nounIn(words: readonly string[], shell: Shell): string | undefined {
  const [first, second] = operandsOf(words, shell);
  return first === "help" ? second : first;
}

/** The words that are not options of all commands, or their values. Empty if such an option lacks its value. */
function operandsOf(words: readonly string[], shell: Shell): readonly string[] {
  const scout = addGlobalOptions(new Command("rollcall"), { ...shell, out: SILENT_SINK, err: SILENT_SINK });
  try {
    return scout.parseOptions([...words]).operands;
  } catch (error) {
    // Ignore the error, because the real parse reports it.
    if (error instanceof CommanderError) return [];
    throw error;
  }
}

/**
 * Add the verb that a noun stands for when none is given: `rollcall node` lists nodes. Returns the words unchanged when
 * there is a verb, or when help is requested.
 */
export function withStandardVerb(words: readonly string[], shell: Shell): readonly string[] {
  if (words.some((word) => word === "--help" || word === "-h")) return words;
  const standard = NOUNS.find(({ name }) => name === nounIn(words, shell))?.standard;
  const ends = words.map((_, at) => at + 1).filter((end) => operandsOf(words.slice(0, end), shell).length === 1);
  const [at] = ends;
  const isBare = operandsOf(words, shell).length === 1 && (words[at ?? 0] ?? "-").startsWith("-");
  return standard === undefined || at === undefined || !isBare ? words : words.toSpliced(at, 0, standard);
}
