// biome-ignore-all lint/a11y/noRedundantRoles: rows shown as cards on narrow screens lose their roles.
import type { ReactNode } from "react";

/** A column of a data table. */
export interface DataColumn<T> {
  readonly title: string;
  readonly cell: (row: T) => ReactNode;
  readonly right?: boolean;
}

/** A table of moderate length, rendered completely. */
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
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach a scrollable element.
    <section className="table-wrap" tabIndex={0} aria-label={label}>
      <table className="table" role="table">
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ title, right }) => (
              <th key={title} scope="col" role="columnheader" className={right ? "right" : ""}>
                {title || <span className="hidden-text">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map(({ title, cell, right }, at) => {
                const shown = cell(row);
                const classes = [
                  right && "right number",
                  title === "" && "untitled",
                  at === 0 && "lead",
                  [null, "", "-"].includes(shown as string | null) && "nothing",
                ];
                return (
                  <td key={title} role="cell" data-title={title} className={classes.filter(Boolean).join(" ")}>
                    {shown}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
