import { UsageError } from "../failure.ts";
import type { GlobalOptions, Invocation, Verb } from "../invocation.ts";
import { fillTemplate, JSONPATH } from "../output/jsonpath.ts";
import { recordingSink } from "../output/recording-sink.ts";
import { redraw } from "../output/redraw.ts";

/** Options that people know from kubectl and docker, and that have another name in Rollcall. */
export interface FamiliarOptions extends GlobalOptions {
  /** --selector: like --labels. */
  readonly selector?: string;
  readonly labels?: string;
  /** --sort-by: like --order-by. */
  readonly sortBy?: string;
  readonly orderBy?: string;
  /** False with --no-headers: like --hide-header. */
  readonly headers?: boolean;
  readonly hideHeader?: boolean;
  /** -q: like -o name. */
  readonly quiet?: boolean;
  readonly watch?: boolean;
}

const WATCH_INTERVAL_MS = 2_000;

/**
 * Translate familiar options into those that verbs know, and run the verb. --watch repeats a listing until Ctrl-C, and
 * -o jsonpath=TEMPLATE prints values of the response that -o json would print. `takesLabels` is whether --selector
 * means the verb's --labels.
 */
export function adapted<Options>(verb: Verb<Options>, takesLabels: boolean): Verb<Options> {
  return async (invocation) => {
    const options = translate(invocation.options as FamiliarOptions, takesLabels) as Invocation<Options>["options"];
    const { watch = false, output } = options as FamiliarOptions;
    const call = { ...invocation, options };
    if (watch) await watchVerb(verb, call);
    else if (output?.startsWith(JSONPATH)) await printPaths(verb, call, output.slice(JSONPATH.length));
    else await verb(call);
  };
}

function translate(options: FamiliarOptions, takesLabels: boolean): FamiliarOptions {
  const { sortBy, headers, quiet, ...others } = options;
  const { selector, labels } = others;
  if (takesLabels && selector !== undefined && labels !== undefined) {
    throw new UsageError("--selector and --labels mean the same: use one of them");
  }
  if (quiet === true && others.output !== undefined && others.output !== "name") {
    throw new UsageError("--quiet prints only names: it cannot be combined with --output");
  }
  return {
    ...others,
    ...(takesLabels && selector !== undefined ? { labels: selector } : {}),
    ...(sortBy === undefined ? {} : { orderBy: sortBy }),
    ...(headers === false ? { hideHeader: true } : {}),
    ...(quiet === true ? { output: "name" } : {}),
  };
}

async function watchVerb<Options>(verb: Verb<Options>, invocation: Invocation<Options>): Promise<void> {
  const { shell, options } = invocation;
  if (options.output !== undefined && options.output !== "table" && options.output !== "wide") {
    throw new UsageError("--watch only prints tables; `rollcall events --follow` prints changes as json");
  }
  await redraw(shell, () => textOf(verb, invocation), {
    intervalMs: WATCH_INTERVAL_MS,
    count: Number.POSITIVE_INFINITY,
  });
}

async function printPaths<Options>(
  verb: Verb<Options>,
  invocation: Invocation<Options>,
  template: string,
): Promise<void> {
  const options = { ...invocation.options, output: "json" };
  const text = await textOf(verb, { ...invocation, options });
  invocation.shell.out.write(fillTemplate(template, JSON.parse(text)));
}

/** Run a verb. Returns what it writes to standard output. */
async function textOf<Options>(verb: Verb<Options>, invocation: Invocation<Options>): Promise<string> {
  const out = recordingSink(invocation.shell.out);
  await verb({ ...invocation, shell: { ...invocation.shell, out } });
  return out.text();
}
