import { csvRecord } from "./csv.ts";
import type { Paint, Style } from "./style.ts";
import { pad, printable, textWidth, truncate } from "./text.ts";

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
  /** Text longer than this many columns is cut short, unless everything is asked for. Not cut when absent. */
  readonly limit?: number;
  /** What stands there for a row. */
  readonly cell: (row: Row) => Cell;
}

/** How a table is printed. */
export interface TableLook {
  /** Whether the headings are left out. */
  readonly hideHeader: boolean;
  /** Whether long text is printed whole. */
  readonly wide: boolean;
  /** The colours. */
  readonly paint: Paint;
}

const GAP = "  ";

/**
 * Prints rows page by page, so that a list of any length needs the memory of one page. Columns are as wide as the
 * widest cell so far: a later page may widen one, but never narrows it, and the headings stand above the first page
 * alone.
 */
export class TablePrinter<Row> {
  readonly #columns: readonly Column<Row>[];
  readonly #look: TableLook;
  readonly #widths: number[];
  #headerPrinted: boolean;

  constructor(columns: readonly Column<Row>[], look: TableLook) {
    this.#columns = columns;
    this.#look = look;
    this.#headerPrinted = look.hideHeader;
    this.#widths = columns.map((column) => (look.hideHeader ? 0 : textWidth(column.title)));
  }

  /** The next rows as lines, the headings first when they have not been printed yet. */
  print(rows: readonly Row[]): string {
    const cells = rows.map((row) => this.#columns.map((column) => this.#fit(column, row)));
    for (const line of cells) {
      line.forEach((cell, at) => {
        this.#widths[at] = Math.max(this.#widths[at] ?? 0, textWidth(cell.text));
      });
    }
    const lines = cells.map((line) => this.#line(line));
    if (!this.#headerPrinted) {
      this.#headerPrinted = true;
      lines.unshift(this.#line(this.#columns.map(({ title }) => ({ text: title, style: "bold" }))));
    }
    return lines.map((line) => `${line}\n`).join("");
  }

  #fit(column: Column<Row>, row: Row): Cell {
    const cell = column.cell(row);
    const text = printable(cell.text);
    const cut = this.#look.wide || column.limit === undefined ? text : truncate(text, column.limit);
    return { ...cell, text: cut };
  }

  #line(cells: readonly Cell[]): string {
    return cells
      .map((cell, at) => {
        const last = at === cells.length - 1;
        const filled = last ? cell.text : pad(cell.text, this.#widths[at] ?? 0);
        return this.#look.paint(cell.style ?? "plain", filled);
      })
      .join(GAP)
      .trimEnd();
  }
}

/** The rows as CSV, without headings. */
export function csvRows<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return rows
    .map((row) =>
      csvRecord(
        columns.map((column) => {
          const cell = column.cell(row);
          return cell.raw ?? cell.text;
        }),
      ),
    )
    .join("");
}

/** The headings as CSV. */
export function csvHeader<Row>(columns: readonly Column<Row>[]): string {
  return csvRecord(columns.map((column) => column.name));
}
