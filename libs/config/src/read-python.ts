import type { Problem } from "./assignment.ts";
import { type Assignment, type FileResult, unknownKey } from "./assignment.ts";
import type { ForeignIndex, ForeignValue } from "./foreign.ts";
import { editDistance, type KeyIndex } from "./key-index.ts";
import { parsePython } from "./parse-python.ts";
import { type ConfigFile, tooLarge } from "./read-yaml.ts";

/** Whether to read a file as Python, the format of KohakuRiver's configuration. */
export function isPython({ name }: ConfigFile): boolean {
  return name.toLowerCase().endsWith(".py");
}

/**
 * Maximum number of characters by which a name can differ from a key and still be reported as a typo. A name
 * that differs more is a variable of the file.
 */
const MOST_MISSPELT_LETTERS = 2;

/**
 * Read settings from a Python file: plain values only, because nothing is executed. Other variables are ignored
 * unless they look like a misspelled key.
 */
export function readPython(file: ConfigFile, index: KeyIndex, foreign: ForeignIndex): FileResult {
  const problem = tooLarge(file);
  if (problem !== null) return { assignments: [], foreign: [], problems: [problem] };
  const assignments: Assignment[] = [];
  const others: ForeignValue[] = [];
  const problems: Problem[] = [];
  for (const { name, line, value, code } of parsePython(file.text)) {
    const where = `${file.name}:${line}`;
    const found = index.find(name);
    const isForeign = foreign.find(name) !== undefined;
    if (found !== undefined && value === undefined) {
      const message = `${name} is an expression, and Python is not executed here; write a plain value`;
      problems.push({ where, path: found.key.path, message });
    } else if (found !== undefined && value !== undefined) {
      if (value !== "") assignments.push({ found, written: value, where });
    } else if (isForeign) {
      if (value !== "") others.push({ path: name, written: value ?? code, where });
    } else {
      const meant = slipOf(name, [...index.bareNames, ...foreign.paths]);
      if (meant !== undefined) problems.push(unknownKey(where, name, meant));
    }
  }
  return { assignments, foreign: others, problems };
}

function slipOf(name: string, known: readonly string[]): string | undefined {
  const upper = name.toUpperCase().slice(0, 100);
  return known.find((it) => editDistance(upper, it.toUpperCase()) <= MOST_MISSPELT_LETTERS);
}
