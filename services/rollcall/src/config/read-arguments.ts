import { optionHint, UsageError } from "@rollcall/cli";
import { type ConfigKeys, editDistance, type Flags, type KeyDeclaration } from "@rollcall/config";

/** A parsed command line. */
export interface Arguments {
  /** Values, keyed by flag name or by key path, for loadConfig(). */
  readonly flags: Flags;
  /** --config. */
  readonly file: string | undefined;
  /** --help or -h. */
  readonly help: boolean;
  /** Words that are not flags. */
  readonly words: readonly string[];
}

/** Values, keyed by flag or key path. A flag can be repeated. */
type Collected = Map<string, string[]>;

/**
 * Parse a command line whose flags are configuration keys: `--flag value`, `--flag=value`, `--switch` and
 * `--no-switch` for booleans, `--set KEY=VALUE` for any key, `--config FILE`, `--help`. Throws UsageError for an
 * unknown flag, or a flag without its value.
 */
export function readArguments(words: readonly string[], keys: ConfigKeys<unknown>): Arguments {
  const byFlag = flagsOf(keys);
  const collected: Collected = new Map();
  const left: string[] = [];
  let file: string | undefined;
  let help = false;
  const queue = [...words];
  for (let word = queue.shift(); word !== undefined; word = queue.shift()) {
    if (word === "-h" || word === "--help") {
      help = true;
      continue;
    }
    if (!word.startsWith("--")) {
      if (word.startsWith("-") && word !== "-") throw new UsageError(`unknown option '${word}'`);
      left.push(word);
      continue;
    }
    const [flag = "", inline] = splitOnce(word.slice(2));
    const value = () => inline ?? valueAfter(word, queue);
    if (flag === "config") file = value();
    else if (flag === "set") setPath(collected, value());
    else setFlag(collected, byFlag, flag, inline, value);
  }
  return { flags: toFlags(collected, keys, byFlag), file, help, words: left };
}

/** Keys of the configuration, keyed by their flags. */
function flagsOf(keys: ConfigKeys<unknown>): ReadonlyMap<string, KeyDeclaration<unknown>> {
  const declared = Object.values<KeyDeclaration<unknown>>(keys);
  return new Map(declared.flatMap((key) => (key.flag === undefined ? [] : [[key.flag, key]])));
}

function setFlag(
  collected: Collected,
  byFlag: ReadonlyMap<string, KeyDeclaration<unknown>>,
  flag: string,
  inline: string | undefined,
  value: () => string,
): void {
  const key = byFlag.get(flag);
  const negated = flag.startsWith("no-") ? byFlag.get(flag.slice(3)) : undefined;
  if (key === undefined && typeof negated?.default === "boolean" && inline === undefined) {
    add(collected, flag.slice(3), "false");
  } else if (key === undefined) {
    throw unknownOption(flag, [...byFlag.keys()]);
  } else {
    add(collected, flag, typeof key.default === "boolean" ? (inline ?? "true") : value());
  }
}

/** The error for an unknown flag, with the one that means the same, or the most similar one. */
export function unknownOption(flag: string, options: readonly string[]): UsageError {
  const hint = optionHint(flag, { usage: "", options });
  if (hint !== null) return new UsageError(`unknown option '--${flag}'\nhint: ${hint}`);
  const similar = options.find((one) => editDistance(one, flag) <= MOST_MISSPELT_LETTERS);
  return new UsageError(`unknown option '--${flag}'${similar === undefined ? "" : `\n(Did you mean --${similar}?)`}`);
}

/** Number of wrong letters up to which a flag is similar to another. */
const MOST_MISSPELT_LETTERS = 2;

function setPath(collected: Collected, assignment: string): void {
  const [path = "", value] = splitOnce(assignment);
  if (value === undefined || path === "") {
    throw new UsageError(`cannot use '${assignment}' as set value, should be KEY=VALUE`);
  }
  add(collected, path, value);
}

function toFlags(
  collected: Collected,
  keys: ConfigKeys<unknown>,
  byFlag: ReadonlyMap<string, KeyDeclaration<unknown>>,
): Flags {
  const declared = new Map(Object.entries<KeyDeclaration<unknown>>(keys));
  return Object.fromEntries(
    [...collected].map(([name, values]) => {
      const example = (byFlag.get(name) ?? declared.get(name))?.default;
      // A map can be given in parts, with one flag for each. If a flag for another value is repeated, the last
      // one wins, as usual on command lines.
      const several = Array.isArray(example) || isMap(example);
      return [name, several ? values.join(",") : (values.at(-1) ?? "")];
    }),
  );
}

/** Whether a key's value is a map of strings. An address is an object too, but a single value. */
function isMap(example: unknown): boolean {
  return typeof example === "object" && example !== null && !("port" in example);
}

function add(collected: Collected, name: string, value: string): void {
  collected.set(name, [...(collected.get(name) ?? []), value]);
}

function valueAfter(word: string, queue: string[]): string {
  const value = queue.shift();
  if (value === undefined) throw new UsageError(`option '${word}' requires a value`);
  return value;
}

function splitOnce(text: string): readonly [string, string | undefined] {
  const at = text.indexOf("=");
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
