import { wrap } from "@rollcall/cli";
import { type ConfigKeys, environmentName, type KeyDeclaration, writeValue } from "@rollcall/config";

/** What the help of a verb says. */
export interface VerbHelp {
  /** The line after "Usage: rollcall". */
  readonly usage: string;
  readonly description: string;
  /** The keys whose flags it takes. */
  readonly keys: ConfigKeys<unknown>;
  /** Lines after the flags. */
  readonly notes: readonly string[];
}

/** Where the width of a terminal is not known. */
const WIDTH = 80;
/** Narrower texts are a column of single words. */
const LEAST_WIDTH = 60;
const INDENT = 27;

/**
 * The help of a verb whose flags are configuration keys.
 *
 * @param columns the width that it has to fit; 0 when nothing limits it.
 */
export function formatVerbHelp({ usage, description, keys, notes }: VerbHelp, columns: number): string {
  const width = columns === 0 ? WIDTH : Math.max(LEAST_WIDTH, columns);
  const entry = (name: string, text: string) => formatEntry(name, text, width);
  const flags = Object.entries<KeyDeclaration<unknown>>(keys).flatMap(([path, key]) =>
    key.flag === undefined ? [] : [entry(...flagText(path, key.flag, key))],
  );
  const others = [
    entry("--config FILE", "Configuration file; ROLLCALL_CONFIG does the same."),
    entry("--set KEY=VALUE", "Any key of `rollcall config list`."),
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

/** The flags of a verb whose options are configuration keys, for completion. */
export function verbFlags(keys: ConfigKeys<unknown>): readonly string[] {
  const own = Object.values<KeyDeclaration<unknown>>(keys).flatMap(({ flag, default: value }) => {
    if (flag === undefined) return [];
    return typeof value === "boolean" ? [`--${flag}`, `--no-${flag}`] : [`--${flag}`];
  });
  return [...own, "--config", "--set", "--help"];
}
