const COLUMNS = 120;
/** Matches words that would begin a list, a quotation or a heading at the start of a line. */
const NEVER_FIRST = /^(?:[-+*#>]+|\d+[.)])$/;

/** Format a text as a paragraph: escape markup except in code, and wrap lines at 120 columns. */
export function prose(text: string): string {
  return wrapped(escaped(text.trim()));
}

/** Format a text as one cell of a table. */
export function cell(text: string): string {
  return escaped(text.trim()).replaceAll(/\s+/g, " ").replaceAll("|", "\\|");
}

/** Format a word of a program as code, also in a table. */
export function code(word: string): string {
  return `\`${word.replaceAll("|", "\\|")}\``;
}

/** Format rows as a table with headings. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const line = (cells: readonly string[]) => `|${cells.map((text) => (text === "" ? " " : ` ${text} `)).join("|")}|`;
  return [line(headings), `|${"---|".repeat(headings.length)}`, ...rows.map(line), ""];
}

/** Format help text for a terminal as paragraphs. Indented lines stay unchanged. */
export function helpText(text: string): readonly string[] {
  const lines: string[] = [];
  let shown: string[] = [];
  const flush = () => {
    if (shown.length > 0) lines.push("```text", ...shown, "```", "");
    shown = [];
  };
  for (const line of text.trim().split("\n")) {
    if (line.startsWith(" ")) shown.push(line.slice(2));
    else {
      flush();
      if (line !== "") lines.push(prose(line), "");
    }
  }
  flush();
  return lines;
}

/** Join lines into a page that ends with one line break and has no two consecutive empty lines. */
export function page(...lines: readonly string[]): string {
  return `${lines
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trimEnd()}\n`;
}

function escaped(text: string): string {
  const parts = text.split(/(`[^`]*`)/);
  return parts.map((part, at) => (at % 2 === 1 ? part : escapedWords(part))).join("");
}

function escapedWords(text: string): string {
  return text.replaceAll("<", "&lt;").replaceAll("*", "\\*");
}

function wrapped(text: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && longer.length > COLUMNS) {
      // Move such a word to the new line together with the word before it.
      const cut = NEVER_FIRST.test(word) ? line.lastIndexOf(" ") : line.length;
      lines.push(line.slice(0, cut));
      line = `${line.slice(cut + 1)} ${word}`.trimStart();
    } else {
      line = longer;
    }
  }
  return [...lines, line].join("\n");
}
