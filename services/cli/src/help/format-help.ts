import { type Command, Help } from "commander";
import { wrap } from "../output/text.ts";
import { EXAMPLES } from "./examples.ts";

export const OPTIONS_NOTE = "`rollcall options` lists the options of all commands, such as --server and -o.";

/** How help is laid out: examples come first, and options of all commands have their own command, `options`. */
export const HELP_LAYOUT: Partial<Help> = {
  showGlobalOptions: false,
  // Hide the program's options except --help and --version. They apply to all commands, and `rollcall options` lists
  // them.
  visibleOptions(command: Command) {
    const visible = Help.prototype.visibleOptions.call(this, command);
    return command.parent === null ? visible.filter(({ long }) => long === "--help" || long === "--version") : visible;
  },
  formatHelp(command: Command, helper: Help) {
    const text = Help.prototype.formatHelp.call(this, command, helper);
    const blocks = text.trimEnd().split("\n\n");
    const first = blocks.findIndex((block) => /^[A-Z][A-Za-z ,]*:\n/.test(block));
    const at = first < 0 ? blocks.length : first;
    blocks.splice(at, 0, ...examplesOf(command));
    if (command.parent !== null && command.commands.length === 0) {
      blocks.push(wrap(OPTIONS_NOTE, helper.helpWidth ?? 80));
    }
    return `${blocks.join("\n\n")}\n`;
  },
};

/** The words that call a command, without the program's name. */
function wordsOf(command: Command): string {
  const words: string[] = [];
  for (let of: Command | null = command; of?.parent; of = of.parent) words.unshift(of.name());
  return words.join(" ");
}

/** Command lines that show how a command is used. */
export function exampleLines(command: Command): readonly string[] {
  return (EXAMPLES[wordsOf(command)] ?? []).map((line) => `rollcall ${line}`);
}

function examplesOf(command: Command): readonly string[] {
  const lines = exampleLines(command);
  return lines.length === 0 ? [] : [["Examples:", ...lines.map((line) => `  ${line}`)].join("\n")];
}
