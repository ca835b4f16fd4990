import { describe, expect, it } from "@jest/globals";
import { toCsv } from "./csv.ts";

describe("toCsv()", () => {
  it.each([
    ["plain", "plain"],
    ['say "hi", now', '"say ""hi"", now"'],
    ["two\nlines", '"two\nlines"'],
    [" blank ", '" blank "'],
    ["=1+1", "'=1+1"],
    ["+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"],
    ["-2", "'-2"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["  =1+1", "'  =1+1"],
    ["\t=1+1", "'\t=1+1"],
    ["\u0000=1", "'\u0000=1"],
    ["\r@x", '"\'\r@x"'],
    ["\uFF1D1", "'\uFF1D1"],
    ['=HYPERLINK("x")', '"\'=HYPERLINK(""x"")"'],
    ["a=b", "a=b"],
    ["a;=1+1", "'a;=1+1"],
  ])("should write %j", (text, expected) => {
    expect(toCsv(["h"], [[text]])).toBe(`h\r\n${expected}\r\n`);
  });

  it("should leave numbers as they are", () => {
    expect(toCsv(["a", "b"], [[-1, 2.5]])).toBe("a,b\r\n-1,2.5\r\n");
  });
});
