import { EXIT_CODES } from "../../services/cli/src/exit-codes.ts";
import { cell, code, page, table } from "./markdown.ts";

const PREFACE = `# Exit codes

Generated from \`services/cli/src/exit-codes.ts\` by \`make gen\`; do not edit.

Scripts can rely on these codes. A command that fails prints why on standard error, and nothing that looks like a result
on standard output.
`;

const OF_EVERY_COMMAND = [
  ["0", "Done."],
  [
    "1",
    "Refused or failed, or the output could not be written. The list below names the commands with another code for that.",
  ],
  [
    "2",
    "Wrong usage: an unknown command, option or word, or a missing one; or an input file that is missing, cannot be " +
      "read, or is not what it should be. Nothing was sent or changed.",
  ],
  ["130", "Interrupted with Ctrl-C. What was sent before may have happened."],
];

const INPUT_FILES = `Input files are those that you name, on the command line, in the environment or in a context:
job files, declared state, policies, configuration files, archives and their passphrases, access tokens, and the PEM
files of \`--ca-file\`, \`--client-cert\`, \`--client-key\` and \`doctor --certificate\`. Files that Rollcall itself keeps,
such as contexts and the data directory, are not: 1 where they cannot be used. \`up\`, \`serve\`, \`agent\` and \`keeper\`
read certificates and other files again while they run: 1 where they cannot start with them.

Standard output has to be open, for example into \`/dev/null\`: with \`>&-\` a command fails as it does on a full disk, and
the change that it was to make may have been made. In the npm package Node.js itself opens \`/dev/null\` in the place of a
closed output, which Rollcall cannot notice.
`;

/** docs/reference/exit-codes.md: what the exit codes of each command mean. */
export function exitCodesPage(): string {
  const rows = Object.entries(EXIT_CODES).map(([words, { done, failed, others = {} }]) => [
    code(`rollcall ${words}`),
    cell(done),
    cell(failed),
    cell(
      Object.entries(others)
        .map(([number, meaning]) => `${number}: ${meaning}`)
        .join("; "),
    ),
  ]);
  return page(
    PREFACE,
    "## Of every command",
    "",
    ...table(["code", "meaning"], OF_EVERY_COMMAND),
    INPUT_FILES,
    "## By command",
    "",
    ...table(["command", "0", "1", "others"], rows),
  );
}
