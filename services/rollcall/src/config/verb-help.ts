import { wrap } from "@rollcall/cli";
import { type ConfigKeys, environmentName, type KeyDeclaration, writeValue } from "@rollcall/config";

export interface VerbHelp {
  /** The line after "Usage: rollcall". */
  readonly usage: string;
  readonly description: string;
  /** The configuration keys that the verb has flags for. */
  readonly keys: ConfigKeys<unknown>;
  /** Lines to print below the flags. */
  readonly notes: readonly string[];
}

/** The width when the terminal's width is unknown. */
const WIDTH = 80;
/** The minimum width, because narrower text would have one word per line. */
const LEAST_WIDTH = 60;
const INDENT = 27;

/**
 * Format the help of a verb whose flags are configuration keys.
 *
 * @param columns The width to fit; 0 for no limit.
 */
export function formatVerbHelp({ usage, description, keys, notes }: VerbHelp, columns: number): string {
  const width = columns === 0 ? WIDTH : Math.max(LEAST_WIDTH, columns);
  const entry = (name: string, text: string) => formatEntry(name, text, width);
  const flags = Object.entries<KeyDeclaration<unknown>>(keys).flatMap(([path, key]) =>
    key.flag === undefined ? [] : [entry(...flagText(path, key.flag, key))],
  );
  const others = [
    entry("--config FILE", "Configuration file (or set ROLLCALL_CONFIG)."),
    entry("--set KEY=VALUE", "Set any key that `rollcall config list` shows."),
    entry("-h, --help", "Print this help."),
  ];
  return [
    `Usage: rollcall ${usage}`,
    "",
    wrap(description, width),
    "",
    "Options:",
    ...flags.flat(),
    ...others.flat(),
    ...(notes.length === 0 ? [] : ["", ...notes.map((note) => wrap(note, width))]),
    "",
  ].join("\n");
}

function flagText(path: string, flag: string, key: KeyDeclaration<unknown>): readonly [string, string] {
  const isSwitch = typeof key.default === "boolean";
  const name = isSwitch ? `--[no-]${flag}` : `--${flag} VALUE`;
  const written = key.secret ? undefined : writeValue(key.schema, key.default);
  const shown = typeof written === "string" && written !== "" ? ` Default ${written}.` : "";
  return [name, `${key.doc}${shown} [${path}, ${environmentName(path)}]`];
}

function formatEntry(name: string, text: string, width: number): readonly string[] {
  const lines = wrap(text, width - INDENT).split("\n");
  const first = `  ${name}`;
  if (first.length >= INDENT) return [first, ...lines.map((line) => " ".repeat(INDENT) + line)];
  return lines.map((line, at) => (at === 0 ? first.padEnd(INDENT) : " ".repeat(INDENT)) + line);
}

/** The flags of a verb whose flags are configuration keys, for completion. */
export function verbFlags(keys: ConfigKeys<unknown>): readonly string[] {
  const own = Object.values<KeyDeclaration<unknown>>(keys).flatMap(({ flag, default: value }) => {
    if (flag === undefined) return [];
    return typeof value === "boolean" ? [`--${flag}`, `--no-${flag}`] : [`--${flag}`];
  });
  return [...own, "--config", "--set", "--help"];
}
