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
  ["2", "Wrong usage: an unknown command, option, word or file, or a missing one. Nothing was sent."],
  ["130", "Interrupted with Ctrl-C. What was sent before may have happened."],
];

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
    "## By command",
    "",
    ...table(["command", "0", "1", "others"], rows),
  );
}
