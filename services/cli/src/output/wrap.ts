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

/** A value that is narrower is hard to read. */
const LEAST_WIDTH = 20;
