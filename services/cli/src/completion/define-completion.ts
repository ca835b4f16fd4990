import type { Command } from "commander";
import { SHELL_WORDS } from "../choices.ts";
import { action, addNotes } from "../command.ts";
import { pickWord } from "../failure.ts";
import type { Shell } from "../shell.ts";

/** Define `rollcall completion`. The printed scripts call `rollcall __complete`, which run-cli.ts handles. */
export function defineCompletion(command: Command, shell: Shell): void {
  addNotes(
    command.argument("<shell>", SHELL_WORDS.join(", ")),
    `  bash:  source <(rollcall completion bash)
  zsh:   rollcall completion zsh > "\${fpath[1]}/_rollcall"
  fish:  rollcall completion fish > ~/.config/fish/completions/rollcall.fish`,
  );
  command.action(
    action(shell, async ({ args }) => {
      const { completionScript } = await import("./scripts.ts");
      shell.out.write(completionScript(pickWord("shell", args[0] ?? "", SHELL_WORDS)));
    }),
  );
}
