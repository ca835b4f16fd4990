import { describe, expect, it } from "@jest/globals";
import { paintNothing } from "./style.ts";
import { type Column, TablePrinter } from "./table.ts";

const COLUMNS: readonly Column<readonly [string, string]>[] = [
  { title: "ID", name: "id", cell: ([id]) => ({ text: id }) },
  { title: "NOTE", name: "note", limit: 5, cell: ([, note]) => ({ text: note }) },
];
const LOOK = { hideHeader: false, wide: false, paint: paintNothing };

describe("TablePrinter", () => {
  it("should print the headings once, and widen columns when a later page needs it", () => {
    const table = new TablePrinter(COLUMNS, LOOK);
    expect(table.print([["a", "x"]])).toBe("ID  NOTE\na   x\n");
    expect(table.print([["long-id", "y"]])).toBe("long-id  y\n");
    expect(table.print([["b", "z"]])).toBe("b        z\n");
  });

  it("should print the headings of an empty table", () => {
    expect(new TablePrinter(COLUMNS, LOOK).print([])).toBe("ID  NOTE\n");
    expect(new TablePrinter(COLUMNS, { ...LOOK, hideHeader: true }).print([])).toBe("");
  });

  it("should cut at a column's limit unless it is wide", () => {
    expect(new TablePrinter(COLUMNS, { ...LOOK, hideHeader: true }).print([["a", "123456"]])).toBe("a  1234…\n");
    expect(new TablePrinter(COLUMNS, { ...LOOK, hideHeader: true, wide: true }).print([["a", "123456"]])).toBe(
      "a  123456\n",
    );
  });
});
