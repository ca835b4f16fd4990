import type { Command } from "commander";
import { SHELL_WORDS } from "../choices.ts";
import { pickWord } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { lazily } from "./lazily.ts";

/** Add `completion`. The scripts that it prints call `rollcall __complete`, which run-cli.ts answers. */
export function addCompletionCommands(program: Command, shell: Shell): void {
  program
    .command("completion")
    .description("print a script that completes commands, options and node ids in your shell")
    .argument("<shell>", SHELL_WORDS.join(", "))
    .addHelpText(
      "after",
      `
bash:  source <(rollcall completion bash)
zsh:   rollcall completion zsh > "\${fpath[1]}/_rollcall"
fish:  rollcall completion fish > ~/.config/fish/completions/rollcall.fish`,
    )
    .action(
      lazily(shell, async () => {
        const { completionScript } = await import("../completion/scripts.ts");
        return async ({ args }) => {
          shell.out.write(completionScript(pickWord("shell", args[0] ?? "", SHELL_WORDS)));
        };
      }),
    );
}
