import { PHRASES } from "./phrases.ts";

export interface Finding {
  /** The line number, counted from 1. */
  readonly line: number;
  readonly found: string;
  /** The words to write instead. */
  readonly write: string;
}

/**
 * A refused word or phrase, and the words to write instead. If a word ends in X, X stands for the rest of a
 * type's name.
 */
type Refused = readonly [phrase: string, write: string];

/**
 * Read the words in the last column of the glossary in CONTRIBUTING.md. Returns each with the term to write
 * instead.
 */
export function glossaryWords(contributing: string): readonly Refused[] {
  const [, section = ""] = /^## Glossary\n([\s\S]*?)^## /m.exec(contributing) ?? [];
  const rows = [...section.matchAll(/^\| ([^|]+) \| [^|]+ \| ([^|]*?) ?\|$/gm)].slice(1);
  return rows.flatMap(([, term = "", words = ""]) =>
    words
      .split(", ")
      .filter((word) => word !== "")
      .map((word): Refused => [word, term.trim()]),
  );
}

/**
 * Find refused phrases in the prose of a file: in the comments and text literals of code, and outside the code
 * of a page.
 */
export function findPhrases(path: string, text: string, words: readonly Refused[]): readonly Finding[] {
  const refused = [...PHRASES, ...words.filter(([word]) => !word.endsWith("X"))];
  const pattern = new RegExp(
    `\\b(?:${refused.map(([phrase]) => phrase.replaceAll(" ", "\\s+(?:[*#/]+\\s+)*")).join("|")})\\b`,
    "gi",
  );
  const instead = new Map(refused.map(([phrase, write]) => [phrase, write]));
  const prose = path.endsWith(".md") ? proseOfPage(text) : proseOfCode(path, text);
  return [...prose.matchAll(pattern)].map(({ 0: found, index }) => ({
    line: text.slice(0, index).split("\n").length,
    found: found.replaceAll(/\s+(?:[*#/]+\s+)*/g, " "),
    write: instead.get(found.replaceAll(/\s+(?:[*#/]+\s+)*/g, " ").toLowerCase()) ?? "",
  }));
}

/** Find names of types whose prefix the glossary refuses. */
export function refusedNames(text: string, words: readonly Refused[]): readonly string[] {
  const prefixes = words.filter(([word]) => word.endsWith("X")).map(([word]) => word.slice(0, -1));
  if (prefixes.length === 0) return [];
  const pattern = new RegExp(`\\b(?:class|interface|type|message) ((?:${prefixes.join("|")})[A-Z]\\w*)`, "g");
  return [...text.matchAll(pattern)].map(([, name = ""]) => name);
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}

function proseOfPage(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```|`[^`\n]*`|\]\([^)\s]*\)|<!--[\s\S]*?-->/gm, blank);
}

/**
 * Match comments and text literals. HASH is for languages whose comments begin with `#`, and SLASHES for those
 * with `//`. JSX also matches the text between tags.
 */
const HASH = /"""[\s\S]*?"""|(?<=^|\s)#[^\n]*|"(?:[^"\\\n]|\\.)*"/g;
const SLASHES = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g;
const JSX = new RegExp(`${SLASHES.source}|(?<=[>}])[^<>{}"\`]+(?=[<{])`, "g");

function proseOfCode(path: string, text: string): string {
  const isHash = /\.(?:py|sh|ya?ml|toml)$|Makefile$/.test(path);
  const kept = isHash ? HASH : path.endsWith(".tsx") ? JSX : SLASHES;
  let prose = "";
  let end = 0;
  for (const { 0: piece, index } of text.matchAll(kept)) {
    prose += blank(text.slice(end, index)) + piece;
    end = index + piece.length;
  }
  return prose + blank(text.slice(end));
}
