import { readFile, stat } from "node:fs/promises";
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import type { Problem } from "./assignment.ts";
import { type Assignment, type FileResult, unknownKey } from "./assignment.ts";
import type { ForeignIndex, ForeignValue } from "./foreign.ts";
import type { KeyIndex } from "./key-index.ts";
import type { Written } from "./value-types.ts";
import { findDeepNesting } from "./values/yaml-nesting.ts";

/** A configuration file that was read. Messages refer to it by name. */
export interface ConfigFile {
  readonly name: string;
  readonly text: string;
}

/** Maximum size of a file. No configuration is larger. */
const LARGEST_FILE_BYTES = 65_536;
// Maximum nesting of a value. No configuration is nested deeper, and anchors can nest without brackets.
const DEEPEST = 32;
// Maximum number of values. No configuration has more, and YAML anchors can expand a small file to an enormous one.
const MOST_VALUES = 10_000;

/**
 * Read settings from a YAML file. Sections can be nested or dotted, case is ignored, and an empty value sets
 * nothing.
 */
export function readYaml(file: ConfigFile, index: KeyIndex, foreign: ForeignIndex): FileResult {
  const problem = tooLarge(file);
  if (problem !== null) return { assignments: [], foreign: [], problems: [problem] };
  const deep = findDeepNesting(file.text);
  if (deep !== null) {
    const where = `${file.name}:${deep.line}`;
    return { assignments: [], foreign: [], problems: [{ where, message: deep.message }] };
  }
  return new YamlReader(file, index, foreign).read();
}

/** The problem of a file that is too large; null for other files. */
export function tooLarge({ name, text }: ConfigFile): Problem | null {
  const isLarge = text.length > LARGEST_FILE_BYTES;
  return isLarge ? { where: name, message: "the file is too large" } : null;
}

class YamlReader {
  readonly #file: ConfigFile;
  readonly #index: KeyIndex;
  readonly #foreign: ForeignIndex;
  readonly #lines = new LineCounter();
  readonly #document: Document;
  readonly #assignments: Assignment[] = [];
  readonly #others: ForeignValue[] = [];
  readonly #problems: Problem[] = [];
  #valuesLeft = MOST_VALUES;

  constructor(file: ConfigFile, index: KeyIndex, foreign: ForeignIndex) {
    this.#file = file;
    this.#index = index;
    this.#foreign = foreign;
    // Use the failsafe schema, which keeps every scalar as the written string: 1.10 stays 1.10, and no word becomes a
    // boolean.
    this.#document = parseDocument(file.text, { schema: "failsafe", lineCounter: this.#lines });
  }

  read(): FileResult {
    for (const error of this.#document.errors) {
      const message = error.message.split("\n")[0] ?? "not YAML";
      this.#problems.push({
        where: this.#at(error.pos[0]),
        message: message.replace(/ at line .*/, ""),
      });
    }
    const root = this.#document.contents;
    if (this.#problems.length === 0 && root !== null && !isUnset(root)) this.#section(root, "", 0);
    return {
      assignments: this.#assignments,
      foreign: this.#others,
      problems: this.#problems,
    };
  }

  #section(node: unknown, path: string, depth: number): void {
    const resolved = this.#resolve(node);
    if (!isMap(resolved) || depth > DEEPEST) {
      const what = path === "" ? "the file must be a map of keys" : `${path} must be a section`;
      this.#problems.push({ where: this.#where(node), message: what });
      return;
    }
    for (const { key, value } of resolved.items) {
      const word = isScalar(key) ? String(key.value) : "";
      this.#entry(path === "" ? word : `${path}.${word}`, key, value, depth);
    }
  }

  #entry(path: string, key: unknown, value: unknown, depth: number): void {
    const where = this.#where(key);
    const found = this.#index.find(path);
    const foreign = this.#foreign.find(path);
    // Treat an alias that is also a foreign key as the foreign key, which can have its own rules.
    if (foreign !== undefined && (found?.alias !== undefined || !this.#isOurs(path))) {
      this.#foreignEntry(foreign.path, where, value);
    } else if (found !== undefined && !(this.#index.isSection(path) && isMap(this.#resolve(value)))) {
      const written = isUnset(value) ? "" : this.#written(value, 0);
      if (isUnset(value) || (written === "" && found.alias !== undefined)) return;
      if (written === null) this.#problems.push({ where, message: `${path} has too many or too deeply nested values` });
      else this.#assignments.push({ found, written, where });
    } else if (this.#index.isSection(path) || this.#foreign.isAbove(path)) {
      if (!isUnset(value)) this.#section(value, path, depth + 1);
    } else {
      this.#unknown(path, where, value, depth);
    }
  }

  #isOurs(path: string): boolean {
    return this.#index.find(path) !== undefined || this.#index.isSection(path);
  }

  /** An empty value sets nothing, because other programs write all of their keys to their files. */
  #foreignEntry(path: string, where: string, value: unknown): void {
    if (isUnset(value)) return;
    const written = this.#written(value, 0);
    if (written === null) this.#problems.push({ where, message: `${path} has too many or too deeply nested values` });
    else if (!isEmpty(written)) this.#others.push({ path, written, where });
  }

  /** Report each leaf of an unknown section, so that each leaf gets its own suggestion. */
  #unknown(path: string, where: string, value: unknown, depth: number): void {
    const resolved = this.#resolve(value);
    this.#valuesLeft -= 1;
    if (this.#valuesLeft < 0) return;
    if (!isMap(resolved) || resolved.items.length === 0 || depth > DEEPEST) {
      this.#problems.push(unknownKey(where, path, this.#index.nearest(path, this.#foreign.paths)));
      return;
    }
    for (const item of resolved.items) {
      const word = isScalar(item.key) ? String(item.key.value) : "";
      this.#unknown(`${path}.${word}`, this.#where(item.key), item.value, depth + 1);
    }
  }

  #written(node: unknown, depth: number): Written | null {
    this.#valuesLeft -= 1;
    if (depth > DEEPEST || this.#valuesLeft < 0) return null;
    const resolved = this.#resolve(node);
    if (isScalar(resolved)) return String(resolved.value ?? "");
    if (isSeq(resolved)) {
      const items: Written[] = [];
      for (const item of resolved.items) {
        const written = this.#written(item, depth + 1);
        if (written === null) return null;
        items.push(written);
      }
      return items;
    }
    const entries: [string, Written][] = [];
    for (const { key, value } of isMap(resolved) ? resolved.items : []) {
      const written = this.#written(value, depth + 1);
      if (written === null) return null;
      entries.push([isScalar(key) ? String(key.value) : "", written]);
    }
    return Object.fromEntries(entries);
  }

  #resolve(node: unknown): unknown {
    return isAlias(node) ? node.resolve(this.#document) : node;
  }

  #where(node: unknown): string {
    const range = typeof node === "object" && node !== null && "range" in node ? node.range : null;
    return this.#at(Array.isArray(range) && typeof range[0] === "number" ? range[0] : 0);
  }

  #at(offset: number): string {
    return `${this.#file.name}:${this.#lines.linePos(offset).line}`;
  }
}

function isEmpty(written: Written): boolean {
  return typeof written === "string" ? written === "" : Object.keys(written).length === 0;
}

/** A key without a value, or with `null` or `~`, counts as absent. */
function isUnset(node: unknown): boolean {
  if (node === null || node === undefined) return true;
  return isScalar(node) && node.type === "PLAIN" && /^(|~|null)$/i.test(String(node.value ?? ""));
}

/**
 * Read a configuration file for loadConfig(). Messages name it by its path. Throws when it cannot be read or is
 * larger than 64 KiB.
 */
export async function readConfigFile(path: string): Promise<ConfigFile> {
  const { size } = await stat(path);
  if (size > LARGEST_FILE_BYTES) {
    throw new Error(`${path} has ${size} bytes; the limit is ${LARGEST_FILE_BYTES}`);
  }
  return { name: path, text: await readFile(path, "utf8") };
}
