import { timestampMs } from "@bufbuild/protobuf/wkt";
import { stateWords } from "@rollcall/domain";
import { type Paint, paintNothing, type Style, styleOfState } from "./style.ts";
import { pad, printable, textWidth, truncate, wrap } from "./text.ts";
import { formatTime } from "./units.ts";

/** The content of one cell of a table. */
export interface Cell {
  /** The text for people. */
  readonly text: string;
  /** The value for programs, in CSV; `text` when absent. */
  readonly raw?: string;
  /** The style on a terminal; plain if absent. */
  readonly style?: Style;
}

/** One column of a table. */
export interface Column<Row> {
  /** The heading for people, for example "LAST SEEN". */
  readonly title: string;
  /** The heading in CSV, for example "last_seen". */
  readonly name: string;
  /** Longer text is truncated to this many columns, unless the table is wide. Never truncated if absent. */
  readonly limit?: number;
  /**
   * Columns with the highest rank are left out first if the table is wider than the terminal. Never left out if
   * absent.
   */
  readonly rank?: number;
  /** A shorter cell for a table that is otherwise wider than the terminal. */
  readonly short?: (row: Row) => Cell;
  /** Whether text of the last column that does not fit continues on the next line, instead of being cut. */
  readonly wraps?: boolean;
  /** Whether only wide tables and CSV contain the column. */
  readonly wide?: boolean;
  /** The cell of a row. */
  readonly cell: (row: Row) => Cell;
}

/** How a table is printed. */
export interface TableFormat {
  /** Whether to leave out the headings. */
  readonly hideHeader?: boolean;
  /** Whether to print every column, and long text in full. */
  readonly wide?: boolean;
  /** The colours; none when absent. */
  readonly paint?: Paint;
  /** The width that a table must fit unless it is wide; 0 or absent for no limit. */
  readonly columns?: number;
}

const GAP = "  ";

/**
 * Prints rows page by page, so that a list of any length needs the memory of one page. Columns are as wide as the
 * widest cell so far: a later page can widen a column, but never narrows it. Only the first page has headings. The
 * first page also decides which columns fit; longer lines of later pages are cut at the end.
 */
export class TablePrinter<Row> {
  readonly #look: Required<TableFormat>;
  #columns: readonly Column<Row>[];
  #widths: readonly number[];
  #hasBegun = false;

  constructor(columns: readonly Column<Row>[], look: TableFormat = {}) {
    this.#look = { hideHeader: false, wide: false, paint: paintNothing, columns: 0, ...look };
    this.#columns = columns.filter(({ wide }) => this.#look.wide || wide !== true);
    this.#widths = this.#columns.map(({ title }) => (this.#look.hideHeader ? 0 : textWidth(title)));
  }

  /** Format the next rows as lines, after the headings if they have not been printed yet. */
  print(rows: readonly Row[]): string {
    const isFirst = !this.#hasBegun;
    this.#hasBegun = true;
    this.#measure(rows);
    if (isFirst && !this.#look.wide && this.#look.columns > 0) {
      if (this.#totalWidth() > this.#look.columns && this.#columns.some(({ short }) => short !== undefined)) {
        this.#columns = this.#columns.map((column) => ({ ...column, cell: column.short ?? column.cell }));
        this.#remeasure(rows);
      }
      this.#columns = columnsThatFit(this.#columns, this.#widths, this.#look.columns);
      this.#remeasure(rows);
    }
    const lines = rows.flatMap((row) => this.#row(row));
    if (isFirst && !this.#look.hideHeader) {
      lines.unshift(this.#line(this.#columns.map(({ title }) => ({ text: title, style: "bold" }))));
    }
    return lines.map((line) => `${line}\n`).join("");
  }

  #totalWidth(): number {
    return this.#widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length);
  }

  #remeasure(rows: readonly Row[]): void {
    this.#widths = this.#columns.map(({ title }) => (this.#look.hideHeader ? 0 : textWidth(title)));
    this.#measure(rows);
  }

  /** The lines of a row: one, unless the last column continues. */
  #row(row: Row): readonly string[] {
    const cells = this.#columns.map((column) => this.#fit(column, row));
    const last = this.#columns.at(-1);
    const cell = cells.at(-1);
    const { wide, columns } = this.#look;
    if (wide || columns === 0 || last?.wraps !== true || last.limit === undefined || cell === undefined) {
      return [this.#line(cells)];
    }
    const [first = "", ...more] = wrap(printable(last.cell(row).text), last.limit).split("\n");
    const indent = this.#widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0);
    const continued = more.map((text) => " ".repeat(indent) + this.#look.paint(cell.style ?? "plain", text));
    return [this.#line([...cells.slice(0, -1), { ...cell, text: first }]), ...continued];
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

/** Minimum width of a shortened column. A narrower column would show too little. */
const LEAST_WIDTH = 12;

/**
 * The columns that fit, in order. Columns with the highest rank are left out first. The last column to leave out is
 * shortened instead, if it can be truncated and at least LEAST_WIDTH of it fits.
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

/** A cell with this text. Without text, the cell is "-" for people and empty for programs. */
export function optionalCell(text: string | undefined, style: Style = "plain"): Cell {
  return text === undefined || text === "" ? { text: "-", raw: "" } : { text, style };
}

/** A state of the API, as words in its colour; programs get its name. */
export function stateCell(name: string): Cell {
  return { text: stateWords(name), raw: name, style: styleOfState(name) };
}

/** A reason of the API, as words; programs get its name. */
export function reasonCell(name: string | undefined): Cell {
  return name === undefined || name === "" ? optionalCell(name) : { text: stateWords(name), raw: name };
}

/** The time of day if a point in time is today, in UTC, and otherwise the day as well. */
export function shortTimeCell(time: Parameters<typeof timestampMs>[0] | undefined, nowMs: number): Cell {
  const cell = timeCell(time);
  const today = formatTime(nowMs).slice(0, DATE_LENGTH);
  return cell.text.startsWith(today) ? { ...cell, text: cell.text.slice(DATE_LENGTH) } : cell;
}

/** The length of "2026-05-01 ". */
const DATE_LENGTH = 11;

/** A point in time; without one, `none` is shown to people. */
export function timeCell(time: Parameters<typeof timestampMs>[0] | undefined, none = "-"): Cell {
  if (time === undefined) return { text: none, raw: "" };
  const atMs = timestampMs(time);
  return { text: formatTime(atMs), raw: new Date(atMs).toISOString() };
}

// Other control characters do not belong in a table; line breaks and tabs can occur inside quotes.
// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds control characters to remove them.
const CSV_CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** One record of RFC 4180, with its line break (CRLF). Fields with commas, quotes or line breaks are quoted. */
export function csvRecord(fields: readonly string[]): string {
  return `${fields.map(csvField).join(",")}\r\n`;
}

function csvField(field: string): string {
  const safe = field.replaceAll(CSV_CONTROLS, "\ufffd");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
