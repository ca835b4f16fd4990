import type { Command } from "commander";
import type { Shell } from "../shell.ts";
import { lazily } from "./lazily.ts";

/** Add `version`. */
export function addVersionCommand(program: Command, shell: Shell): void {
  program
    .command("version")
    .description("print the version")
    .addHelpText("after", '\n--output json|yaml prints {"version", "node", "platform"}.')
    .action(lazily(shell, async () => (await import("../verbs/version.ts")).version));
}
