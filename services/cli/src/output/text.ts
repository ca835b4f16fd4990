import stringWidth from "string-width";

const ASCII = /^[\x20-\x7e]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not reach a terminal.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
/** Made when it is needed: the first one of a process reads tables of Unicode for some 20 ms. */
let characters: Intl.Segmenter | undefined;

/** A value that is narrower is hard to read. */
const LEAST_WIDTH = 20;

/**
 * Make text that came from elsewhere safe to print: a node's host name, a label or a reason must not be able to move
 * the cursor, colour the screen or reverse the line. Line breaks become spaces.
 */
export function printable(text: string): string {
  return ASCII.test(text) ? text : text.replaceAll(/\r?\n/g, " ").replaceAll("\t", " ").replaceAll(CONTROLS, "\ufffd");
}

/** How many columns a terminal needs for the text; colours take none. */
export function textWidth(text: string): number {
  return ASCII.test(text) ? text.length : stringWidth(text);
}

/** Shorten text to a number of columns, the last of them an ellipsis. Text that fits stays as it is. */
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

/** Fill text with spaces to a number of columns. */
export function pad(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - textWidth(text)));
}

/** Names and values as lines, the values aligned: "Name:   value". Empty values are shown as "-". */
export function fieldLines(fields: readonly (readonly [name: string, value: string])[], gap = ":"): string {
  const width = Math.max(...fields.map(([name]) => textWidth(name))) + gap.length + 1;
  return fields.map(([name, value]) => `${pad(`${name}${gap}`, width)}${printable(value || "-")}\n`).join("");
}

/**
 * Wrap text to a width, line by line. Lines that begin with a blank, such as examples, are printed as they are, and so
 * is a word that is longer than the width.
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

/** Wrap a value that stands behind a label: what does not fit `columns` (0 for no limit) goes on below the value. */
export function wrapValue(label: string, value: string, columns: number, labelWidth: number): string {
  if (columns === 0) return label + value;
  const lines = wrapLine(value, Math.max(LEAST_WIDTH, columns - labelWidth));
  return label + lines.join(`\n${" ".repeat(labelWidth)}`);
}
