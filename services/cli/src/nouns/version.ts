import type { Command } from "commander";
import { buildInfo, versionText } from "../build-info.ts";
import { action, addNotes } from "../command.ts";
import type { Shell } from "../shell.ts";

/** Define `rollcall version`. */
export function defineVersion(command: Command, shell: Shell): void {
  addNotes(command, '-o json|yaml prints {"version", "commit", "commitTime", "build", "node", "platform"}.');
  command.action(
    action(shell, async ({ options }) => {
      const { ANSWER_FORMATS, outputFormat, writePlain } = await import("../output/format.ts");
      const format = outputFormat(options, ANSWER_FORMATS);
      const { node, platform } = shell.runsOn;
      const text = versionText(buildInfo(), [`Node.js ${node}`, platform]);
      if (format === "table") shell.out.write(`${text}\n`);
      else await writePlain(shell, format, { ...buildInfo(), node, platform });
    }),
  );
}
