import type { GlobalOptions } from "../command.ts";
import type { Shell } from "../shell.ts";

/** How a piece of text looks on a terminal. */
export type Style = "plain" | "bold" | "dim" | "good" | "warning" | "bad" | "cyan" | "magenta" | "blue";

/** Put a style on text; without colours the text stays as it is. */
export type Paint = (style: Style, text: string) => string;

const CODES = {
  bold: ["1", "22"],
  dim: ["2", "22"],
  good: ["32", "39"],
  warning: ["33", "39"],
  bad: ["31", "39"],
  // Colours that distinguish items and have no meaning.
  cyan: ["36", "39"],
  magenta: ["35", "39"],
  blue: ["34", "39"],
} as const satisfies Record<Exclude<Style, "plain">, readonly [string, string]>;

/** Text stays as it is. */
export const paintNothing: Paint = (_style, text) => text;

/** ANSI colours. */
const paintAnsi: Paint = (style, text) => {
  if (style === "plain" || text === "") return text;
  const [on, off] = CODES[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
};

/** Colours on a terminal, unless --no-color, --no-style or NO_COLOR forbids them. */
export function choosePaint(
  { out, env }: Pick<Shell, "out" | "env">,
  options: Pick<GlobalOptions, "color"> & { readonly style?: boolean },
): Paint {
  const isForbidden = Boolean(env.NO_COLOR) || env.TERM === "dumb" || !options.color || options.style === false;
  return out.isTerminal && !isForbidden ? paintAnsi : paintNothing;
}

/** The width that output has to fit: COLUMNS, or the terminal's; 0 where nothing limits it. */
export function columnsOf({ out, env }: Pick<Shell, "out" | "env">): number {
  const named = /^[1-9]\d{0,4}$/.test(env.COLUMNS ?? "") ? Number(env.COLUMNS) : 0;
  return named > 0 ? named : out.isTerminal ? out.columns() : 0;
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

/** The colour of a state's word. */
export function styleOfState(word: string): Style {
  return STATE_STYLES[word] ?? "plain";
}

/** The colour of a share of 0 to 100 that is in use. */
export function styleOfPercent(percent: number): Style {
  if (percent >= 90) return "bad";
  return percent >= 75 ? "warning" : "plain";
}
