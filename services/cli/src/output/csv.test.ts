import { describe, expect, it } from "@jest/globals";
import { csvRecord } from "./table.ts";

describe("csvRecord()", () => {
  it.each([
    [["a", "b"], "a,b\r\n"],
    [["a,b", "c"], '"a,b",c\r\n'],
    [['say "x"'], '"say ""x"""\r\n'],
    [["two\nlines", ""], '"two\nlines",\r\n'],
  ])("should write %j", (fields, record) => {
    expect(csvRecord(fields)).toBe(record);
  });

  it("should hold no escape sequence", () => {
    expect(csvRecord(["\u001b[2J"])).toBe("\ufffd[2J\r\n");
  });
});
