const COLUMNS = 120;
/** At the start of a line they would begin a list, a quotation or a heading. */
const NEVER_FIRST = /^(?:[-+*#>]+|\d+[.)])$/;

/** A text as a paragraph: markup in it is escaped, code aside, and its lines end at 120 columns. */
export function prose(text: string): string {
  return wrapped(escaped(text.trim()));
}

/** A text as one cell of a table. */
export function cell(text: string): string {
  return escaped(text.trim()).replaceAll(/\s+/g, " ").replaceAll("|", "\\|");
}

/** A word of a program, as code; in a table too. */
export function code(word: string): string {
  return `\`${word.replaceAll("|", "\\|")}\``;
}

/** Rows below their headings. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const line = (cells: readonly string[]) => `|${cells.map((text) => (text === "" ? " " : ` ${text} `)).join("|")}|`;
  return [line(headings), `|${"---|".repeat(headings.length)}`, ...rows.map(line), ""];
}

/** Paragraphs of a terminal's help: lines that begin with blanks are shown as they are. */
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

/** A page of lines: it ends with one line break, and has no two empty lines in a row. */
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
      // A word that may not begin a line takes the one before it along.
      const cut = NEVER_FIRST.test(word) ? line.lastIndexOf(" ") : line.length;
      lines.push(line.slice(0, cut));
      line = `${line.slice(cut + 1)} ${word}`.trimStart();
    } else {
      line = longer;
    }
  }
  return [...lines, line].join("\n");
}
