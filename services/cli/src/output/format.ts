import type { OUTPUT_WORDS } from "../choices.ts";
import { pickWord } from "../failure.ts";
import type { GlobalOptions } from "../invocation.ts";
import type { Shell } from "../shell.ts";
import { type Paint, paintAnsi, paintNothing } from "./style.ts";

/** How results are written. */
export type OutputFormat = (typeof OUTPUT_WORDS)[number];

/** The format of this call, among those that the verb knows; the first is its default. Throws UsageError. */
export function outputFormat<F extends OutputFormat>(options: GlobalOptions, known: readonly [F, ...F[]]): F {
  return options.output === undefined ? known[0] : pickWord("output", options.output, known);
}

/** Colours where a person reads on a terminal and did not forbid them by --no-color or NO_COLOR. */
export function choosePaint({ out, env }: Shell, options: Pick<GlobalOptions, "color">): Paint {
  const forbidden = Boolean(env.NO_COLOR) || env.TERM === "dumb" || !options.color;
  return out.isTerminal && !forbidden ? paintAnsi : paintNothing;
}
