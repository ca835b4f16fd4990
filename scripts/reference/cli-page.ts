import { createProgram } from "../../services/cli/src/program.ts";
import { type Shell, SILENT_SINK } from "../../services/cli/src/shell.ts";
import { createConfigurationView } from "../../services/rollcall/src/config/configuration-view.ts";
import { SERVER_VERBS } from "../../services/rollcall/src/server-verbs.ts";
import { cell, code, helpText, page, prose, table } from "./markdown.ts";

type Command = Awaited<ReturnType<typeof createProgram>>;

const PREFACE = `# Commands

Generated from the program's own tree of commands by \`make gen\`; do not edit.

\`rollcall --help\`, \`rollcall NOUN --help\` and \`rollcall NOUN VERB --help\` print the same. The commands that run a part
of Rollcall (\`up\`, \`serve\`, \`agent\` and so on) come last; their flags are keys of the
[configuration](configuration.md).
`;

const HELP_COLUMNS = 100;

/** docs/reference/cli.md: every command, argument and flag. */
export async function cliPage(): Promise<string> {
  const program = await programFor([]);
  const own = new Set(SERVER_VERBS.map(({ name }) => name));
  const nouns = program.commands.map((command) => command.name()).filter((name) => !own.has(name));
  const sections: string[] = [];
  for (const name of nouns) {
    const tree = await programFor([name]);
    const noun = tree.commands.find((command) => command.name() === name);
    if (noun !== undefined) sections.push(...commandLines(noun, 2));
  }
  for (const verb of SERVER_VERBS) {
    sections.push(`## rollcall ${verb.name}`, "", ...(await verbHelp(verb)));
  }
  return page(PREFACE, "## Options of every command", "", ...optionTable(program), ...notesOf(program), ...sections);
}

/** The tree, of which one noun is complete. */
function programFor(words: readonly string[]): Promise<Command> {
  const { shell } = recordingShell();
  const verbs = SERVER_VERBS.map(({ name, usage, description }) => ({
    ...{ name, usage, description },
    run: async () => 0,
    complete: async () => [],
  }));
  return createProgram(shell, { verbs, configuration: createConfigurationView(shell) }, words);
}

function commandLines(command: Command, depth: number): readonly string[] {
  const help = command.createHelp();
  const parent = command.parent?.parent == null ? "rollcall" : `rollcall ${command.parent.name()}`;
  const aliases = command.aliases().map((alias) => code(`${parent} ${alias}`));
  const isGroup = command.commands.length > 0;
  return [
    `${"#".repeat(depth)} ${parent} ${command.name()}`,
    "",
    prose(`${command.description()}.${aliases.length === 0 ? "" : ` Also as ${aliases.join(", ")}.`}`),
    "",
    ...(isGroup && command.options.length === 0 ? [] : ["```text", help.commandUsage(command), "```", ""]),
    ...optionTable(command),
    ...notesOf(command),
    ...command.commands.filter((child) => child.name() !== "help").flatMap((child) => commandLines(child, depth + 1)),
  ];
}

function optionTable(command: Command): readonly string[] {
  const help = command.createHelp();
  const given = command.registeredArguments.map((argument) => {
    const name = argument.variadic ? `${argument.name()}...` : argument.name();
    return [code(argument.required ? `<${name}>` : `[${name}]`), cell(help.argumentDescription(argument))];
  });
  const options = help
    .visibleOptions(command)
    .filter(({ long }) => long !== "--help")
    .map((option) => [code(option.flags), cell(help.optionDescription(option))]);
  const rows = [...given, ...options];
  return rows.length === 0 ? [] : table(["argument or option", "what it does"], rows);
}

/** The paragraphs after a command's help. */
function notesOf(command: Command): readonly string[] {
  let text = "";
  const writeOut = (more: string) => {
    text += more;
  };
  command.configureOutput({ ...command.configureOutput(), writeOut }).outputHelp();
  return helpText(text.slice(command.helpInformation().length));
}

async function verbHelp({ load }: (typeof SERVER_VERBS)[number]): Promise<readonly string[]> {
  const { shell, written } = recordingShell(HELP_COLUMNS);
  const { run } = await load();
  await run(["--help"], shell, process);
  return ["```text", written().trimEnd(), "```", ""];
}

/** A shell without a terminal, home or configuration: what it shows depends on nothing of this machine. */
function recordingShell(columns = 10_000) {
  let text = "";
  const shell: Shell = {
    args: [],
    env: { COLUMNS: String(columns) },
    cwd: "/",
    home: "/home/you",
    userId: 1_000,
    runsOn: { node: "", platform: "" },
    out: {
      ...SILENT_SINK,
      write: (more) => {
        text += more;
      },
    },
    err: SILENT_SINK,
    ask: null,
    wallMs: () => 0,
    interrupted: new AbortController().signal,
  };
  return { shell, written: () => text };
}
