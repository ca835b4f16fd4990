import { isLabelKey, isLabelValue } from "./labels.ts";
import type { Requirement, Selector } from "./selectors.ts";

/** A selector, or the error in its text. */
export type SelectorParseResult =
  | { readonly ok: true; readonly selector: Selector }
  | {
      readonly ok: false;
      /** Describes the error and its location, for people. */
      readonly message: string;
      /** The position of the error in the text, starting at 0; the length of the text if the error is at its end. */
      readonly position: number;
    };

/** Maximum length of a selector, in characters. */
export const MAX_SELECTOR_LENGTH = 4096;

/** Maximum number of conditions in a selector. Each is evaluated for every node. */
export const MAX_SELECTOR_CONDITIONS = 100;

/**
 * Parse a selector in the syntax of Kubernetes: `a=b`, `a==b`, `a!=b`, `a in (x,y)`, `a notin (x,y)`, `a`, `!a`,
 * `a>1` and `a<1`. Conditions are separated by commas, and all of them must hold. A blank string is the empty
 * selector.
 */
export function parseSelector(text: string): SelectorParseResult {
  if (text.length > MAX_SELECTOR_LENGTH) {
    const message = `a selector has at most ${MAX_SELECTOR_LENGTH} characters, not ${text.length}`;
    return { ok: false, message, position: MAX_SELECTOR_LENGTH };
  }
  return readSelector(text);
}

interface Token {
  readonly kind: "symbol" | "word" | "end";
  readonly text: string;
  readonly position: number;
}

interface Failure {
  readonly ok: false;
  readonly message: string;
  readonly position: number;
}

/** The parsed value, and the index of the token after it. */
type Read<T> = { readonly ok: true; readonly value: T; readonly next: number } | Failure;

const SELECTOR_NUMBER = /^-?[0-9]{1,15}$/;

function readSelector(text: string): SelectorParseResult {
  const tokens = tokenize(text);
  const selector: Requirement[] = [];
  if (tokenAt(tokens, 0).kind === "end") return { ok: true, selector };
  let index = 0;
  while (true) {
    const read = readRequirement(tokens, index);
    if (!read.ok) return read;
    if (selector.length >= MAX_SELECTOR_CONDITIONS) {
      const message = `a selector has at most ${MAX_SELECTOR_CONDITIONS} conditions`;
      return { ok: false, message, position: tokenAt(tokens, index).position };
    }
    selector.push(read.value);
    const separator = tokenAt(tokens, read.next);
    if (separator.kind === "end") return { ok: true, selector };
    if (separator.text !== ",") return expected("a comma or the end", separator);
    index = read.next + 1;
  }
}

/** As in Kubernetes, a word is any text between blanks and symbols. Words are validated later. */
function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = [];
  for (const match of text.matchAll(/==|!=|[=!<>(),]|[^\s=!<>(),]+/g)) {
    const [found] = match;
    const kind = /^[=!<>(),]/.test(found) ? "symbol" : "word";
    tokens.push({ kind, text: found, position: match.index });
  }
  tokens.push({ kind: "end", text: "", position: text.length });
  return tokens;
}

function readRequirement(tokens: readonly Token[], index: number): Read<Requirement> {
  if (tokenAt(tokens, index).text === "!") {
    const key = readKey(tokens, index + 1);
    return key.ok ? { ...key, value: { operator: "!exists", key: key.value } } : key;
  }
  const key = readKey(tokens, index);
  if (!key.ok) return key;
  const operator = tokenAt(tokens, key.next);
  switch (operator.text) {
    case "":
    case ",":
      return { ...key, value: { operator: "exists", key: key.value } };
    case "=":
    case "==":
    case "!=": {
      const value = readValue(tokens, key.next + 1);
      const kind = operator.text === "!=" ? "!=" : "=";
      return value.ok ? { ...value, value: { operator: kind, key: key.value, value: value.value } } : value;
    }
    case "in":
    case "notin": {
      const values = readValues(tokens, key.next + 1);
      const kind = operator.text;
      return values.ok ? { ...values, value: { operator: kind, key: key.value, values: values.value } } : values;
    }
    case ">":
    case "<": {
      const number = readNumber(tokens, key.next + 1);
      const kind = operator.text;
      return number.ok ? { ...number, value: { operator: kind, key: key.value, value: number.value } } : number;
    }
    default:
      return expected("one of =, ==, !=, in, notin, >, <, a comma or the end", operator);
  }
}

function readKey(tokens: readonly Token[], index: number): Read<string> {
  const token = tokenAt(tokens, index);
  if (token.kind !== "word" || !isLabelKey(token.text)) return expected("a label key", token);
  return { ok: true, value: token.text, next: index + 1 };
}

/** Read a missing value, as in `a=` and `a in (,x)`, as the empty value. */
function readValue(tokens: readonly Token[], index: number): Read<string> {
  const token = tokenAt(tokens, index);
  if (token.kind === "end" || token.text === "," || token.text === ")") {
    return { ok: true, value: "", next: index };
  }
  if (token.kind !== "word" || !isLabelValue(token.text)) return expected("a label value", token);
  return { ok: true, value: token.text, next: index + 1 };
}

function readValues(tokens: readonly Token[], index: number): Read<readonly string[]> {
  const open = tokenAt(tokens, index);
  if (open.text !== "(") return expected('"("', open);
  const first = tokenAt(tokens, index + 1);
  if (first.text === ")") return expected("a label value", first);
  const values = new Set<string>();
  let next = index + 1;
  while (true) {
    const value = readValue(tokens, next);
    if (!value.ok) return value;
    values.add(value.value);
    const separator = tokenAt(tokens, value.next);
    next = value.next + 1;
    if (separator.text === ")") return { ok: true, value: [...values].sort(), next };
    if (separator.text !== ",") return expected('a comma or ")"', separator);
  }
}

function readNumber(tokens: readonly Token[], index: number): Read<number> {
  const token = tokenAt(tokens, index);
  if (token.kind !== "word" || !SELECTOR_NUMBER.test(token.text)) {
    return expected("a whole number of at most 15 digits", token);
  }
  // Add 0 to turn "-0" into 0.
  return { ok: true, value: Number(token.text) + 0, next: index + 1 };
}

/** The token at an index, or the end token after the last one. */
function tokenAt(tokens: readonly Token[], index: number): Token {
  return tokens[Math.min(index, tokens.length - 1)] as Token;
}

function expected(what: string, found: Token): Failure {
  const { position } = found;
  const seen = found.kind === "end" ? "the end" : JSON.stringify(found.text);
  const message = `expected ${what} at character ${position + 1}, found ${seen}`;
  return { ok: false, message, position };
}
