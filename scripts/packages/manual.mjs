// The man page, made of what the program itself says when it is asked for help.
import { mapBounded, run } from "./run.mjs";

const COLUMNS = "76";
const AT_ONCE = 2;

/** The man page of a program, in roff. `ask` runs it with words and answers what it prints. */
export async function manualOf({ ask, version, timeS }) {
  const commands = [{ words: [], help: await ask([]) }];
  for (let level = commands; level.length > 0; ) {
    const below = level.flatMap(({ words, help }) => subcommandsIn(help).map((name) => [...words, name]));
    level = await mapBounded(below, AT_ONCE, async (words) => ({ words, help: await ask(words) }));
    commands.push(...level);
  }
  const [root, ...others] = commands;
  const day = new Date(timeS * 1000).toISOString().slice(0, 10);
  return [
    `.TH ROLLCALL 1 "${day}" "rollcall ${version}" "Rollcall"`,
    ".SH NAME",
    "rollcall \\- control plane for fleets of machines",
    ".SH SYNOPSIS",
    ".B rollcall",
    "[options] [command]",
    ".SH DESCRIPTION",
    ...asPrinted(root.help),
    ".SH COMMANDS",
    ...others
      .sort((one, other) => (one.words.join(" ") < other.words.join(" ") ? -1 : 1))
      .flatMap(({ words, help }) => [`.SS rollcall ${words.join(" ")}`, ...asPrinted(withoutGlobalOptions(help))]),
    "",
  ].join("\n");
}

/**
 * Ask a program for help, as wide as a manual is. What a command says is the same in each kind of package: `known`
 * keeps it, by the command, for the next kind. Only the list of commands differs.
 */
export function askProgram(node, main, known) {
  const env = { COLUMNS, NO_COLOR: "1" };
  return async (words) => {
    const command = words.join(" ");
    const help = known.get(command) ?? String(await run(node, [main, ...words, "--help"], { env }));
    if (words.length > 0) known.set(command, help);
    return help;
  };
}

/** The names below "Commands:", aliases and the one that shows help aside. */
function subcommandsIn(help) {
  const [, section = ""] = /^Commands:\n((?: .*\n)*)/m.exec(`${help}\n`) ?? [];
  return [...section.matchAll(/^ {2}([a-z][\w-]*)/gm)].map(([, name]) => name).filter((name) => name !== "help");
}

/** They are those of `rollcall` itself, which the page begins with. */
function withoutGlobalOptions(help) {
  return help.replace(/^Global Options:\n(?: .*\n)*\n?/m, "");
}

function asPrinted(text) {
  const lines = text.trimEnd().replaceAll("\\", "\\e").replaceAll("-", "\\-").split("\n");
  return [".nf", ...lines.map((line) => line.replace(/^(?=[.'])/, "\\&")), ".fi"];
}
