import type { NodeRow } from "./node-row.ts";

/** Label keys with their values, and the number of nodes for each. */
export type LabelIndex = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** One completion of a selector. */
export interface Completion {
  /** The text that the list shows. */
  readonly label: string;
  /** The completed selector. */
  readonly text: string;
  /** Number of nodes that have the label. */
  readonly nodes: number;
}

/**
 * Maximum number of keys, and of values per key. Labels that contain ids would otherwise fill memory.
 */
const MOST_WORDS = 500;
const MOST_COMPLETIONS = 12;

/** Count the labels of loaded nodes. */
export function indexLabels(rows: Iterable<NodeRow>): LabelIndex {
  const index = new Map<string, Map<string, number>>();
  for (const { labels } of rows) {
    for (const [key, value] of labels) {
      const values = index.get(key) ?? new Map<string, number>();
      if (values.size === 0 && index.size < MOST_WORDS) index.set(key, values);
      if (values.has(value) || values.size < MOST_WORDS) values.set(value, (values.get(value) ?? 0) + 1);
    }
  }
  return index;
}

/** Convert the server's label counts. */
export function labelsOfCounts(
  counts: readonly { readonly key: string; readonly value: string; readonly count: number }[],
): LabelIndex {
  const index = new Map<string, Map<string, number>>();
  for (const { key, value, count } of counts) {
    const values = index.get(key) ?? new Map<string, number>();
    index.set(key, values.set(value, count));
  }
  return index;
}

/** Complete a selector: keys after a comma, values after an operator or in parentheses. */
export function completeSelector(text: string, index: LabelIndex): readonly Completion[] {
  const value = /(?:^|,)\s*([^\s=!<>(),]+)\s*(==|=|!=)\s*([^\s=!<>(),]*)$/.exec(text);
  if (value !== null) {
    const [, key = "", , typed = ""] = value;
    return valuesOf(index, key, typed, [], text);
  }
  const inList = /(?:^|,)\s*([^\s=!<>(),]+)\s+(?:in|notin)\s*\(([^()]*?)([^\s,()]*)$/.exec(text);
  if (inList !== null) {
    const [, key = "", before = "", typed = ""] = inList;
    return valuesOf(
      index,
      key,
      typed,
      before.split(",").map((one) => one.trim()),
      text,
    );
  }
  const key = /(?:^|,)\s*!?([^\s=!<>(),]*)$/.exec(text);
  return key === null ? [] : keysOf(index, key[1] ?? "", text);
}

function keysOf(index: LabelIndex, typed: string, text: string): readonly Completion[] {
  const stem = text.slice(0, text.length - typed.length);
  const found = [...index].filter(([key]) => key.startsWith(typed) && key !== typed);
  return found
    .map(([key, values]) => ({ label: key, text: stem + key, nodes: sum(values) }))
    .sort(byUse)
    .slice(0, MOST_COMPLETIONS);
}

function valuesOf(
  index: LabelIndex,
  key: string,
  typed: string,
  without: readonly string[],
  text: string,
): readonly Completion[] {
  const stem = text.slice(0, text.length - typed.length);
  const found = [...(index.get(key) ?? [])].filter(
    ([value]) => value !== "" && value.startsWith(typed) && value !== typed && !without.includes(value),
  );
  return found
    .map(([value, nodes]) => ({ label: value, text: stem + value, nodes }))
    .sort(byUse)
    .slice(0, MOST_COMPLETIONS);
}

function sum(values: ReadonlyMap<string, number>): number {
  return [...values.values()].reduce((total, one) => total + one, 0);
}

function byUse(a: Completion, b: Completion): number {
  return b.nodes - a.nodes || (a.label < b.label ? -1 : 1);
}
