import type { GlobalOptions } from "../invocation.ts";
import type { Shell } from "../shell.ts";
import { wrap } from "./text.ts";

/** How a piece of text looks on a terminal. */
export type Style = "plain" | "bold" | "dim" | "good" | "warning" | "bad" | "cyan" | "magenta" | "blue";

/** Applies a style to text; without colours the text is unchanged. */
export type Paint = (style: Style, text: string) => string;

const CODES = {
  bold: ["1", "22"],
  dim: ["2", "22"],
  good: ["32", "39"],
  warning: ["33", "39"],
  bad: ["31", "39"],
  // These colours distinguish items and have no meaning.
  cyan: ["36", "39"],
  magenta: ["35", "39"],
  blue: ["34", "39"],
} as const satisfies Record<Exclude<Style, "plain">, readonly [string, string]>;

/** Leaves text unchanged. */
export const paintNothing: Paint = (_style, text) => text;

/** Colours with ANSI escape sequences. */
const paintAnsi: Paint = (style, text) => {
  if (style === "plain" || text === "") return text;
  const [on, off] = CODES[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
};

/**
 * Returns a function that paints on a terminal, and leaves text unchanged if --no-color, --no-style, NO_COLOR
 * or TERM=dumb is set.
 */
export function choosePaint(
  { out, env }: Pick<Shell, "out" | "env">,
  options: Pick<GlobalOptions, "color"> & { readonly style?: boolean },
): Paint {
  const isForbidden = Boolean(env.NO_COLOR) || env.TERM === "dumb" || !options.color || options.style === false;
  return out.isTerminal && !isForbidden ? paintAnsi : paintNothing;
}

/** The width that output must fit: COLUMNS, or the terminal's width; 0 for no limit. */
export function columnsOf({ out, env }: Pick<Shell, "out" | "env">): number {
  const named = /^[1-9]\d{0,4}$/.test(env.COLUMNS ?? "") ? Number(env.COLUMNS) : 0;
  return named > 0 ? named : out.isTerminal ? out.columns() : 0;
}

/** Wrap a message to the width of the terminal that shows errors. Elsewhere it stays as it is, for scripts. */
export function wrapped(text: string, { err }: Pick<Shell, "err">): string {
  const width = widthOf(err);
  return Number.isFinite(width) ? wrap(text, width) : text;
}

/** The width of lines for a sink: that of its terminal, without limit elsewhere. */
export function widthOf(sink: Shell["err"]): number {
  return sink.isTerminal && sink.columns() > 0 ? sink.columns() : Number.POSITIVE_INFINITY;
}

const STATE_STYLES: Readonly<Record<string, Style>> = {
  APPROVED: "good",
  PENDING: "warning",
  REJECTED: "bad",
  CONNECTED: "good",
  DISCONNECTED: "bad",
  HEALTHY: "good",
  UNHEALTHY: "bad",
  UNKNOWN: "warning",
  ELIGIBLE: "good",
  INELIGIBLE: "warning",
  DRAINING: "warning",
  DRAINED: "warning",
  UNCONFIRMED: "bad",
  ACTIVE: "good",
  STARTING: "warning",
  RUNNING: "good",
  READY: "good",
  COMPLETED: "good",
  LOST: "bad",
  ORPHANED: "bad",
  FAILED: "bad",
  KILLED_OOM: "bad",
};

/** The colour for a state. */
export function styleOfState(word: string): Style {
  return STATE_STYLES[word] ?? "plain";
}

/** The colour for a percentage in use, 0 to 100. */
export function styleOfPercent(percent: number): Style {
  if (percent >= 90) return "bad";
  return percent >= 75 ? "warning" : "plain";
}
