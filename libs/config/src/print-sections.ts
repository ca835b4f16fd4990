import { stringify } from "yaml";
import { type ConfigKeys, declaredKeys } from "./keys.ts";
import { type Written, writeValue } from "./value-types.ts";

const LINE_WIDTH = 96;

export interface PrintedKey {
  readonly path: string;
  /** Comments printed above the key, each wrapped onto one or more lines. */
  readonly notes: readonly string[];
  /** The value; undefined for a key that is commented out. */
  readonly written: Written | undefined;
}

/** Print keys as YAML, grouped by section. */
export function printSections(keys: readonly PrintedKey[]): readonly string[] {
  const lines: string[] = [];
  let open: readonly string[] = [];
  for (const key of inSections(keys)) {
    const words = key.path.split(".");
    const sections = words.slice(0, -1);
    const shared = sharedLength(open, sections);
    for (let depth = shared; depth < sections.length; depth += 1) {
      if (depth === 0 && lines.length > 0) lines.push("");
      lines.push(`${indent(depth)}${sections[depth]}:`);
    }
    open = sections;
    lines.push(...keyLines(key, words.at(-1) ?? "", sections.length));
  }
  return lines;
}

/** Format text as comment lines. */
export function commentLines(text: string, margin = ""): readonly string[] {
  return wrap(text, LINE_WIDTH - margin.length - 2).map((line) => `${margin}# ${line}`);
}

/** Group keys by section, in order of first appearance. */
function inSections(keys: readonly PrintedKey[]): readonly PrintedKey[] {
  const ranks = new Map<string, number>();
  const rankOf = (path: string) => {
    const words = path.split(".").slice(0, -1);
    return words.map((_, depth) => {
      const section = words.slice(0, depth + 1).join(".");
      const rank = ranks.get(section) ?? ranks.size;
      ranks.set(section, rank);
      return rank;
    });
  };
  return keys
    .map((key) => ({ key, rank: rankOf(key.path) }))
    .sort((a, b) => compare(a.rank, b.rank))
    .map(({ key }) => key);
}

/** Compare positions so that a section's own keys come before its subsections. */
function compare(a: readonly number[], b: readonly number[]): number {
  for (let depth = 0; depth < Math.min(a.length, b.length); depth += 1) {
    const difference = (a[depth] ?? 0) - (b[depth] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function keyLines({ notes, written }: PrintedKey, name: string, depth: number): string[] {
  const margin = indent(depth);
  const comments = notes.flatMap((note) => commentLines(note, margin));
  if (written === undefined) return [...comments, `${margin}# ${name}:`];
  const value = stringify({ [name]: written }, { lineWidth: 0, schema: "failsafe" }).trimEnd();
  return [...comments, ...value.split("\n").map((line) => margin + line)];
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return line === "" ? lines : [...lines, line];
}

function sharedLength(a: readonly string[], b: readonly string[]): number {
  let length = 0;
  while (length < b.length && a[length] === b[length]) length += 1;
  return length;
}

function indent(depth: number): string {
  return "  ".repeat(depth);
}

/**
 * Print a documented file with every key at its default. Keys without a default are commented out, so
 * loading the file changes nothing.
 */
export function printDefaultYaml<T>(keys: ConfigKeys<T>): string {
  const printed = declaredKeys(keys).map(({ path, doc, aliases, schema, default: value }) => ({
    path,
    notes: [doc, ...(aliases === undefined ? [] : [`Also as: ${aliases.join(", ")}.`])],
    written: writeValue(schema, value),
  }));
  return `${printSections(printed).join("\n")}\n`;
}
