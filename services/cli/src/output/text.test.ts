import { describe, expect, it } from "@jest/globals";
import { counted, pad, printable, textWidth, truncate } from "./text.ts";

describe("printable()", () => {
  it("should not change ordinary text", () => {
    expect(printable("Debian GNU/Linux 12 (bookworm) äöü 机器")).toBe("Debian GNU/Linux 12 (bookworm) äöü 机器");
  });

  it("should turn line breaks and tabs into blanks, and make other control characters visible", () => {
    expect(printable("a\r\nb\tc\u001b[31md\u202ee\u0007")).toBe("a b c\ufffd[31md\ufffde\ufffd");
  });
});

describe("counted()", () => {
  it("should use the singular for one only", () => {
    expect([0, 1, 2].map((count) => counted(count, "node"))).toEqual(["0 nodes", "1 node", "2 nodes"]);
    expect([1n, 2n].map((count) => counted(count, "entry", "entries"))).toEqual(["1 entry", "2 entries"]);
  });
});

describe("textWidth()", () => {
  it.each([
    ["", 0],
    ["abc", 3],
    ["äöü", 3],
    ["机器", 4],
    ["e\u0301", 1],
    ["🚀x", 3],
    ["\u001b[32mgood\u001b[39m", 4],
    ["▁▂█", 3],
  ])("should measure %j", (text, width) => {
    expect(textWidth(text)).toBe(width);
  });
});

describe("truncate()", () => {
  it("should keep text that fits, and end other text with an ellipsis", () => {
    expect(truncate("abcdef", 6)).toBe("abcdef");
    expect(truncate("abcdef", 5)).toBe("abcd…");
    expect(truncate("机器机器", 6)).toBe("机器…");
  });
});

describe("pad()", () => {
  it("should fill by width, not by length", () => {
    expect(pad("机", 4)).toBe("机  ");
    expect(pad("abcd", 2)).toBe("abcd");
  });
});
