// Makes the man page from the program's help texts.
import { GROUPS } from "../../services/cli/src/all-nouns.ts";
import { mapBounded, run } from "./run.mjs";

const COLUMNS = "76";
const AT_ONCE = 2;
/** The headings of help below which commands are listed. The root's help groups its commands. */
const HEADINGS = new Set(["Commands:", ...Object.values(GROUPS)]);

/** Make the man page of a program, in roff. `ask` runs the program with arguments and returns its output. */
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
 * Create a function that asks a program for help, at the width of a manual. The help of a command is the same in
 * each kind of package, so `known` caches it by command. Only the list of commands differs.
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

/** List the names below the headings of commands, except aliases and the help command. */
function subcommandsIn(help) {
  return [...`${help}\n`.matchAll(/^([A-Z].*:)\n((?: .*\n)+)/gm)]
    .filter(([, heading]) => HEADINGS.has(heading))
    .flatMap(([, , lines]) => [...lines.matchAll(/^ {2}([a-z][\w-]*)/gm)].map(([, name]) => name))
    .filter((name) => name !== "help");
}

/** Remove the options of `rollcall` itself, which the page lists first. */
function withoutGlobalOptions(help) {
  return help.replace(/^Global Options:\n(?: .*\n)*\n?/m, "");
}

function asPrinted(text) {
  const lines = text.trimEnd().replaceAll("\\", "\\e").replaceAll("-", "\\-").split("\n");
  return [".nf", ...lines.map((line) => line.replace(/^(?=[.'])/, "\\&")), ".fi"];
}
