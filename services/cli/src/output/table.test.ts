import { describe, expect, it } from "@jest/globals";
import { paintNothing } from "./style.ts";
import { type Column, csvRecord, TablePrinter } from "./table.ts";

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

  it("should leave out the columns of the highest rank if the terminal is too narrow, and never wrap lines", () => {
    const columns: readonly Column<string>[] = [
      { title: "ID", name: "id", cell: (id) => ({ text: id }) },
      { title: "SIZE", name: "size", rank: 2, cell: () => ({ text: "12345678" }) },
      { title: "NOTE", name: "note", rank: 1, limit: 40, cell: () => ({ text: "a note of many words" }) },
      { title: "MORE", name: "more", wide: true, cell: () => ({ text: "more" }) },
    ];
    const print = (width: number) => new TablePrinter(columns, { columns: width }).print(["n1"]);
    expect(print(80)).toBe("ID  SIZE      NOTE\nn1  12345678  a note of many words\n");
    expect(print(30)).toBe("ID  NOTE\nn1  a note of many words\n");
    expect(print(20)).toBe("ID  NOTE\nn1  a note of many …\n");
    expect(print(12)).toBe("ID\nn1\n");
    const table = new TablePrinter(columns, { columns: 24 });
    table.print(["n1"]);
    expect(table.print(["a-node-of-a-later-page"])).toBe("a-node-of-a-later-page\n");
    const wide = new TablePrinter(columns, { columns: 12, wide: true }).print(["n1"]);
    expect(wide).toBe("ID  SIZE      NOTE                  MORE\nn1  12345678  a note of many words  more\n");
  });

  it("should not print escape sequences to the terminal", () => {
    expect(new TablePrinter(COLUMNS, { hideHeader: true }).print([["\u001b[2Jx", "y"]])).toBe("\ufffd[2Jx  y\n");
  });
});

describe("csvRecord()", () => {
  it.each([
    [["a", "b"], "a,b\r\n"],
    [["a,b", "c"], '"a,b",c\r\n'],
    [['say "x"'], '"say ""x"""\r\n'],
    [["two\nlines", ""], '"two\nlines",\r\n'],
  ])("should write %j", (fields, record) => {
    expect(csvRecord(fields)).toBe(record);
  });

  it("should contain no escape sequence", () => {
    expect(csvRecord(["\u001b[2J"])).toBe("\ufffd[2J\r\n");
  });
});
