import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Paint, paintNothing, type Style, styleOfState } from "./style.ts";
import { pad, printable, textWidth, truncate } from "./text.ts";
import { formatTime } from "./units.ts";

/** What stands in one place of a table. */
export interface Cell {
  /** For people. */
  readonly text: string;
  /** For programs, in CSV; the text when absent. */
  readonly raw?: string;
  /** How it looks on a terminal; plain when absent. */
  readonly style?: Style;
}

/** One column of a table. */
export interface Column<Row> {
  /** The heading for people, for example "LAST SEEN". */
  readonly title: string;
  /** The heading in CSV, for example "last_seen". */
  readonly name: string;
  /** Text longer than this many columns is cut short, unless the table is wide. Not cut when absent. */
  readonly limit?: number;
  /** Where the table is wider than the terminal, the column with the highest rank goes first. Never when absent. */
  readonly rank?: number;
  /** Whether only wide tables and CSV have it. */
  readonly wide?: boolean;
  /** What stands there for a row. */
  readonly cell: (row: Row) => Cell;
}

/** How a table is printed. */
export interface TableLook {
  /** Whether the headings are left out. */
  readonly hideHeader?: boolean;
  /** Whether every column is printed, and long text in full. */
  readonly wide?: boolean;
  /** The colours; none when absent. */
  readonly paint?: Paint;
  /** The width that a table which is not wide has to fit; 0 or absent where nothing limits it. */
  readonly columns?: number;
}

const GAP = "  ";

/**
 * Prints rows page by page, so that a list of any length needs the memory of one page. Columns are as wide as the
 * widest cell so far: a later page may widen one, but never narrows it, and the headings stand above the first page
 * alone. The first page decides which columns fit; what a later page has too much is cut at the end of the line.
 */
export class TablePrinter<Row> {
  readonly #look: Required<TableLook>;
  #columns: readonly Column<Row>[];
  #widths: readonly number[];
  #hasBegun = false;

  constructor(columns: readonly Column<Row>[], look: TableLook = {}) {
    this.#look = { hideHeader: false, wide: false, paint: paintNothing, columns: 0, ...look };
    this.#columns = columns.filter(({ wide }) => this.#look.wide || wide !== true);
    this.#widths = this.#columns.map(({ title }) => (this.#look.hideHeader ? 0 : textWidth(title)));
  }

  /** The next rows as lines, the headings first when they have not been printed yet. */
  print(rows: readonly Row[]): string {
    const isFirst = !this.#hasBegun;
    this.#hasBegun = true;
    this.#measure(rows);
    if (isFirst && !this.#look.wide && this.#look.columns > 0) {
      this.#columns = columnsThatFit(this.#columns, this.#widths, this.#look.columns);
      this.#widths = this.#columns.map(({ title }) => (this.#look.hideHeader ? 0 : textWidth(title)));
      this.#measure(rows);
    }
    const lines = rows.map((row) => this.#line(this.#columns.map((column) => this.#fit(column, row))));
    if (isFirst && !this.#look.hideHeader) {
      lines.unshift(this.#line(this.#columns.map(({ title }) => ({ text: title, style: "bold" }))));
    }
    return lines.map((line) => `${line}\n`).join("");
  }

  #measure(rows: readonly Row[]): void {
    this.#widths = this.#columns.map((column, at) =>
      rows.reduce((widest, row) => Math.max(widest, textWidth(this.#fit(column, row).text)), this.#widths[at] ?? 0),
    );
  }

  #fit(column: Column<Row>, row: Row): Cell {
    const cell = column.cell(row);
    const text = printable(cell.text);
    const cut = this.#look.wide || column.limit === undefined ? text : truncate(text, column.limit);
    return { ...cell, text: cut };
  }

  #line(cells: readonly Cell[]): string {
    const { wide, columns, paint } = this.#look;
    let left = wide || columns === 0 ? Number.POSITIVE_INFINITY : columns;
    const parts: string[] = [];
    for (const [at, cell] of cells.entries()) {
      if (left <= 0) break;
      const isLast = at === cells.length - 1;
      const text = truncate(cell.text, left);
      const filled = isLast ? text : pad(text, Math.min(left, this.#widths[at] ?? 0));
      parts.push(paint(cell.style ?? "plain", filled));
      left -= textWidth(filled) + GAP.length;
    }
    return parts.join(GAP).trimEnd();
  }
}

/** A column that is narrower says too little. */
const LEAST_WIDTH = 12;

/**
 * The columns that fit, in order: those of the highest rank are left out first. The last one that would be left out is
 * cut short instead, where it may be cut and enough of it fits.
 */
function columnsThatFit<Row>(
  columns: readonly Column<Row>[],
  widths: readonly number[],
  available: number,
): readonly Column<Row>[] {
  const rankOf = (at: number) => columns[at]?.rank ?? 0;
  const places = columns.map((_, at) => at);
  const widthOf = (kept: readonly number[]) => kept.reduce((sum, at) => sum + (widths[at] ?? 0) + GAP.length, 0);
  let kept = places;
  let dropped: number | null = null;
  while (widthOf(kept) - GAP.length > available) {
    const next = kept.reduce((found, at) => (rankOf(at) > rankOf(found) ? at : found), kept[0] ?? 0);
    if (rankOf(next) === 0) break;
    kept = kept.filter((at) => at !== next);
    dropped = next;
  }
  const left = available - widthOf(kept);
  const isCut = (at: number) => at === dropped && columns[at]?.limit !== undefined && left >= LEAST_WIDTH;
  return columns.flatMap((column, at) =>
    kept.includes(at) ? [column] : isCut(at) ? [{ ...column, limit: left }] : [],
  );
}

/** A cell that is "-" for people and empty for programs when there is no text. */
export function optionalCell(text: string | undefined, style: Style = "plain"): Cell {
  return text === undefined || text === "" ? { text: "-", raw: "" } : { text, style };
}

/** A state in its colour. */
export function stateCell(word: string): Cell {
  return { text: word, style: styleOfState(word) };
}

/** A point in time; `none` stands for people where there is none. */
export function timeCell(time: Parameters<typeof timestampMs>[0] | undefined, none = "-"): Cell {
  if (time === undefined) return { text: none, raw: "" };
  const atMs = timestampMs(time);
  return { text: formatTime(atMs), raw: new Date(atMs).toISOString() };
}

// Other control characters have no place in a table; line breaks and tabs may stand inside quotes.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not reach a terminal.
const CSV_CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** One record of RFC 4180, with its line break (CRLF). Fields with commas, quotes or line breaks are quoted. */
export function csvRecord(fields: readonly string[]): string {
  return `${fields.map(csvField).join(",")}\r\n`;
}

function csvField(field: string): string {
  const safe = field.replaceAll(CSV_CONTROLS, "\ufffd");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
