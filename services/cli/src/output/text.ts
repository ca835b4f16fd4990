import stringWidth from "string-width";

const ASCII = /^[\x20-\x7e]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds control characters to remove them.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
/**
 * The segmenter that splits text into characters. Created on demand, because the first segmenter of a process takes
 * about 20 ms to read Unicode tables.
 */
let characters: Intl.Segmenter | undefined;

/** Minimum width of a wrapped value; narrower text is hard to read. */
const LEAST_WIDTH = 20;

/**
 * Make untrusted text safe to print, because a node's host name, a label or a reason must not be able to move the
 * cursor, colour the screen or reverse the line. Line breaks become spaces.
 */
export function printable(text: string): string {
  return ASCII.test(text) ? text : text.replaceAll(/\r?\n/g, " ").replaceAll("\t", " ").replaceAll(CONTROLS, "\ufffd");
}

/** How many columns a terminal needs for the text. Colour codes need none. */
export function textWidth(text: string): number {
  return ASCII.test(text) ? text.length : stringWidth(text);
}

/** Shorten text to a number of columns. The last column is then an ellipsis. Text that fits is unchanged. */
export function truncate(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  let kept = "";
  let width = 0;
  characters ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  for (const { segment } of characters.segment(text)) {
    width += textWidth(segment);
    if (width > columns - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** Format a count with its noun: "1 node", "2 nodes". */
export function counted(count: number | bigint, one: string, many = `${one}s`): string {
  return `${count} ${Number(count) === 1 ? one : many}`;
}

/** Pad text with spaces to a number of columns. */
export function pad(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - textWidth(text)));
}

/** Format names and values as lines with aligned values: "Name:  value". Empty values are shown as "-". */
export function fieldLines(fields: readonly (readonly [name: string, value: string])[], gap = ":"): string {
  const width = Math.max(...fields.map(([name]) => textWidth(name))) + gap.length + 1;
  return fields.map(([name, value]) => `${pad(`${name}${gap}`, width)}${printable(value || "-")}\n`).join("");
}

/**
 * Wrap text to a width, line by line. Lines that start with a blank, such as examples, are unchanged, and a word
 * longer than the width is not broken.
 */
export function wrap(text: string, columns: number): string {
  return text
    .split("\n")
    .flatMap((line) => (line.startsWith(" ") ? [line] : wrapLine(line, columns)))
    .join("\n");
}

function wrapLine(line: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let current = "";
  for (const word of line.split(" ")) {
    const longer = current === "" ? word : `${current} ${word}`;
    if (current !== "" && longer.length > columns) {
      lines.push(current);
      current = word;
    } else {
      current = longer;
    }
  }
  return [...lines, current].map((it) => it.trimEnd());
}

/**
 * Wrap a value after its label. What does not fit into `columns` (0 for no limit) continues on the next line, aligned
 * with the value.
 */
export function wrapValue(label: string, value: string, columns: number, labelWidth: number): string {
  if (columns === 0) return label + value;
  const lines = wrapLine(value, Math.max(LEAST_WIDTH, columns - labelWidth));
  return label + lines.join(`\n${" ".repeat(labelWidth)}`);
}
