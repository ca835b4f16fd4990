import { Command } from "commander";
import { chooseContext } from "../contexts/choose-context.ts";
import type { GlobalOptions, Verb } from "../invocation.ts";
import type { Shell } from "../shell.ts";

/**
 * Make a commander action that loads its verb only when it is called: what the other verbs need is not loaded,
 * so that each starts fast.
 */
export function lazily<Options>(
  shell: Shell,
  load: () => Promise<Verb<Options>>,
): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    // Commander hands over the arguments, the options and, always last, the command itself.
    const command = given.at(-1);
    if (!(command instanceof Command)) throw new TypeError("an action is called with its command");
    const verb = await load();
    const options = command.optsWithGlobals<GlobalOptions & Options>();
    const chosenContext = await chooseContext(shell, options);
    await verb({ shell, args: command.args, options: { ...options, chosenContext } });
  };
}
