/** How a piece of text looks on a terminal. */
export type Style = "plain" | "bold" | "dim" | "good" | "warning" | "bad";

/** Put a style on text; without colours the text stays as it is. */
export type Paint = (style: Style, text: string) => string;

const CODES = {
  bold: ["1", "22"],
  dim: ["2", "22"],
  good: ["32", "39"],
  warning: ["33", "39"],
  bad: ["31", "39"],
} as const satisfies Record<Exclude<Style, "plain">, readonly [string, string]>;

/** Text stays as it is. */
export const paintNothing: Paint = (_style, text) => text;

/** ANSI colours. */
export const paintAnsi: Paint = (style, text) => {
  if (style === "plain" || text === "") return text;
  const [on, off] = CODES[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
};

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
