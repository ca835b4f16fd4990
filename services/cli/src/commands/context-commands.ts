import type { Command } from "commander";
import type { Shell } from "../shell.ts";
import { lazily } from "./lazily.ts";

const CONTEXT = "name of the context";

/** Add `context` and its verbs. */
export function addContextCommands(program: Command, shell: Shell): void {
  const context = program
    .command("context")
    .description("choose among several control planes")
    .addHelpText(
      "after",
      "\nContexts are kept in rollcall/config.yaml in XDG_CONFIG_HOME, else in ~/.config. `rollcall login` makes them.",
    );
  const load = () => import("../verbs/context.ts");
  context
    .command("list")
    .description("list contexts; * marks the current one")
    .addHelpText("after", '\n--output json|yaml prints a list of {"current", "name", "server", "login"}.')
    .action(lazily(shell, async () => (await load()).contextList));
  context
    .command("use")
    .description("make a context the current one")
    .argument("<context>", CONTEXT)
    .action(lazily(shell, async () => (await load()).contextUse));
  context
    .command("show")
    .description("show a context, the one that counts unless another is named; never its token")
    .argument("[context]", CONTEXT)
    .action(lazily(shell, async () => (await load()).contextShow));
  context
    .command("delete")
    .description("forget a context and its token; nothing is revoked")
    .argument("<context>", CONTEXT)
    .action(lazily(shell, async () => (await load()).contextDelete));
  context
    .command("rename")
    .description("give a context another name")
    .argument("<context>", CONTEXT)
    .argument("<new-name>", "the name that it gets")
    .action(lazily(shell, async () => (await load()).contextRename));
}
