import { toCsv } from "../state/csv.ts";
import { Menu } from "./menu.tsx";

/** What is exported of one row, by the name of its column. */
type Values = Readonly<Record<string, string | number>>;

/** Hand what is shown to the reader as CSV or as JSON. `of` is asked when one of them is chosen. */
export function ExportMenu({ name, of }: { readonly name: string; readonly of: () => readonly Values[] }) {
  const csv = () => {
    const rows = of();
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const lines = rows.map((row) => columns.map((column) => row[column] ?? ""));
    download(`${name}.csv`, "text/csv", toCsv(columns, lines));
  };
  const json = () => download(`${name}.json`, "application/json", `${JSON.stringify(of(), null, 2)}\n`);
  return (
    <Menu
      items={[
        { label: "CSV", onSelect: csv },
        { label: "JSON", onSelect: json },
      ]}
    >
      Export
    </Menu>
  );
}

/** Hand a text to the reader as a file. */
export function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser reads it after the click has returned.
  window.setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
