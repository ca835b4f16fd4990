import { Failure } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { printable } from "./text.ts";

/** --yes of a verb that destroys one object, for `option()`. */
export const YES = ["-y, --yes", "Do not ask for confirmation on a terminal"] as const;

/**
 * Ask a user on a terminal before something is destroyed. Scripts are not asked. Throws Failure if the user declines.
 *
 * @param question What to do, for example "delete webhook ops".
 */
export async function confirm(
  { ask }: Pick<Shell, "ask">,
  { yes }: { readonly yes?: boolean },
  question: string,
): Promise<void> {
  if (yes === true || ask === null) return;
  const answer = await ask(`${printable(question)}? [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure("nothing was changed");
}
