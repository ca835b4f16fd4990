import { Lexer, Parser } from "yaml";

/** Maximum nesting of collections in a file. No file that people write is nested deeper. */
const MOST_LEVELS = 100;

/** The place where a text nests collections too deeply. */
export interface NestingProblem {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/**
 * Find where a YAML or JSON text nests collections more than 100 levels deep; null if there is no such place. Call this
 * before parsing a text: the library's composer calls itself for each level, so a few kilobytes of brackets exhaust the
 * stack.
 */
export function findDeepNesting(text: string): NestingProblem | null {
  const parser = new Parser();
  for (const token of new Lexer().lex(text)) {
    // Drop the finished documents, because only the levels that are still open matter.
    for (const _ of parser.next(token));
    // Do not count the lowest level, which is the document itself.
    if (parser.stack.length - 1 <= MOST_LEVELS) continue;
    const before = text.slice(0, parser.offset).split("\n");
    const column = (before.at(-1) ?? "").length + 1;
    return { line: before.length, column, message: `values are nested more than ${MOST_LEVELS} levels deep` };
  }
  return null;
}
