import { toCsv } from "../state/csv.ts";
import { Menu } from "./menu.tsx";

/** The exported values of a row, keyed by column name. */
type Values = Readonly<Record<string, string | number>>;

/** Offers the data on screen as CSV and JSON. `of` is called when the user chooses a format. */
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

/** Download text as a file. */
export function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // Revoke the address later, because the browser reads it after the click handler has returned.
  window.setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
