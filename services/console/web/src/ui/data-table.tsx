import type { ReactNode } from "react";

/** One column of a table of moderate length. */
export interface DataColumn<T> {
  readonly title: string;
  readonly cell: (row: T) => ReactNode;
  readonly right?: boolean;
}

/** A table of moderate length. */
export function DataTable<T>({
  label,
  rows,
  columns,
  keyOf,
}: {
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly DataColumn<T>[];
  readonly keyOf: (row: T) => string;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys.
    <section className="table-wrap" tabIndex={0} aria-label={label}>
      <table className="table">
        <thead>
          <tr>
            {columns.map(({ title, right }) => (
              <th key={title} scope="col" className={right ? "right" : ""}>
                {title || <span className="hidden-text">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, right }) => (
                <td key={title} className={right ? "right number" : ""}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
