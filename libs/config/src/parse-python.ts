import type { Written } from "./value-types.ts";

export interface PythonAssignment {
  readonly name: string;
  /** Starts at 1. */
  readonly line: number;
  /** The value; undefined when Python is needed to evaluate the expression. */
  readonly value: Written | undefined;
  /** The source of the expression, on one line. */
  readonly code: string;
}

/** Maximum nesting of lists. No configuration file nests lists deeper. */
const DEEPEST = 8;
const ASSIGNMENT = /^([A-Za-z_]\w*)\s*(?::\s*[^=]+?)?\s*=(?!=)\s*/;

/**
 * Read assignments of plain values at the top level of a Python file: numbers, strings, True, False, None, and lists
 * of these. Nothing is executed. Everything else (imports, functions, docstrings) is skipped. The syntax of the file
 * is not checked.
 */
export function parsePython(text: string): readonly PythonAssignment[] {
  const found: PythonAssignment[] = [];
  const lines = text.split(/\r?\n/);
  for (let at = 0; at < lines.length; at += 1) {
    const match = ASSIGNMENT.exec(lines[at] ?? "");
    const start = (lines[at] ?? "").slice(match?.[0].length ?? 0);
    const end = endOfStatement(lines, at, match === null ? (lines[at] ?? "") : start);
    if (match?.[1] !== undefined) {
      const code = [start, ...lines.slice(at + 1, end + 1)].map(withoutComment).join(" ").trim();
      found.push({ name: match[1], line: at + 1, value: readLiteral(code), code });
    }
    at = end;
  }
  return found;
}

/** The index of the line where a statement ends. Brackets and triple quotes can span lines. */
function endOfStatement(lines: readonly string[], at: number, first: string): number {
  let depth = 0;
  let quotes = "";
  for (let index = at; index < lines.length; index += 1) {
    const line = index === at ? first : (lines[index] ?? "");
    ({ depth, quotes } = scan(line, depth, quotes));
    if (depth <= 0 && quotes === "") return index;
  }
  return lines.length - 1;
}

const TOKEN = /"""|'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|#.*|[[\](){}]/g;

/** The brackets and triple quotes that are open at the end of a line. */
function scan(line: string, before: number, open: string): { depth: number; quotes: string } {
  let depth = before;
  let quotes = open;
  for (const [token] of line.matchAll(TOKEN)) {
    if (quotes !== "") {
      if (token === quotes) quotes = "";
    } else if (token === '"""' || token === "'''") quotes = token;
    else if ("[({".includes(token)) depth += 1;
    else if ("])}".includes(token)) depth -= 1;
  }
  return { depth, quotes };
}

function withoutComment(line: string): string {
  for (const { 0: token, index } of line.matchAll(TOKEN)) {
    if (token.startsWith("#")) return line.slice(0, index).trimEnd();
  }
  return line.trim();
}

/** The value of an expression; undefined unless it is a plain literal. */
function readLiteral(code: string, depth = 0): Written | undefined {
  if (depth > DEEPEST) return undefined;
  if (code === "None") return "";
  if (code === "True" || code === "False") return code.toLowerCase();
  if (/^[+-]?\d[\d_]*(\.\d+)?$/.test(code)) return code.replaceAll("_", "");
  const quoted = /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')$/.exec(code);
  if (quoted !== null) return unescaped(quoted[1] ?? quoted[2] ?? "");
  const listed = /^(?:\[(.*)\]|\((.*)\))$/s.exec(code);
  return listed === null ? undefined : readItems(listed[1] ?? listed[2] ?? "", depth + 1);
}

function readItems(code: string, depth: number): Written | undefined {
  const items: Written[] = [];
  for (const part of splitAtCommas(code)) {
    const item = readLiteral(part, depth);
    if (item === undefined) return undefined;
    items.push(item);
  }
  return items;
}

function splitAtCommas(code: string): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (const { 0: token, index } of code.matchAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[[\](){},]/g)) {
    if ("[({".includes(token)) depth += 1;
    else if ("])}".includes(token)) depth -= 1;
    else if (token === "," && depth === 0) {
      parts.push(code.slice(from, index).trim());
      from = index + 1;
    }
  }
  return [...parts, code.slice(from).trim()].filter((part) => part !== "");
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (_, letter: string) => ESCAPES[letter] ?? letter);
}
