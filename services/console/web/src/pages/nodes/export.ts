import { toCsv } from "../../state/csv.ts";
import type { NodeRow } from "../../state/nodes/node-row.ts";
import { download } from "../../ui/export-menu.tsx";
import { COLUMNS, type NodeColumn } from "./columns.tsx";

/** Columns that have only live values. They are not exported. */
const LIVE = new Set(["cpu", "memory-used", "seen"]);

/** Export rows as CSV with the columns on screen. */
export function exportCsv(rows: readonly NodeRow[], columns: readonly NodeColumn[]): void {
  const kept = columns.filter(({ name }) => !LIVE.has(name));
  const header = kept.map(({ name }) => name);
  const lines = rows.map((row) => kept.map(({ raw }) => raw(row)));
  download("nodes.csv", "text/csv", toCsv(header, lines));
}

/** Export rows as JSON with all columns. */
export function exportJson(rows: readonly NodeRow[]): void {
  const kept = COLUMNS.filter(({ name }) => !LIVE.has(name));
  const values = rows.map((row) => ({
    ...Object.fromEntries(kept.map(({ name, raw }) => [name, raw(row)])),
    labels: Object.fromEntries(row.labels),
  }));
  download("nodes.json", "application/json", `${JSON.stringify(values, null, 2)}\n`);
}
