import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { gapBefore, type LineSearch, searchLines, searchPiece } from "./output-lines.ts";

/**
 * Search backwards from the end, in pieces of these sizes, for the last lines. Returns the position at which they
 * start.
 */
function beginOf(text: string, lines: number, sizes: readonly number[]): number {
  const bytes = Buffer.from(text);
  let search: LineSearch = searchLines(lines);
  let end = bytes.length;
  for (let turn = 0; end > 0; turn += 1) {
    const from = Math.max(0, end - (sizes[turn % sizes.length] ?? 1));
    const found = searchPiece(search, bytes.subarray(from, end));
    if (found.begin !== null) return from + found.begin;
    search = found.next;
    end = from;
  }
  return 0;
}

describe("searchPiece()", () => {
  it.each([
    ["a\nb\nc\n", 1, "c\n"],
    ["a\nb\nc", 1, "c"],
    ["a\nb\nc", 2, "b\nc"],
    ["a\nb\nc\n", 3, "a\nb\nc\n"],
    ["a\nb\n", 9, "a\nb\n"],
    ["\n\n\n", 2, "\n\n"],
    ["", 1, ""],
  ])("should find in %j the last %i lines", (text, lines, expected) => {
    expect(text.slice(beginOf(text, lines, [2]))).toBe(expected);
  });

  it("should find the lines that tail finds, in whatever pieces it is searched", () => {
    const texts = fc.array(fc.constantFrom("a", "\n", "bc"), { maxLength: 60 }).map((parts) => parts.join(""));
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 12 }), sizes, (text, count, pieces) => {
        const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
        expect(text.slice(beginOf(text, count, pieces))).toBe(lines.slice(-count).join(""));
      }),
    );
  });
});

describe("gapBefore()", () => {
  it("should account for every byte that was written and not read", () => {
    const chunks = fc.array(fc.record({ lost: fc.nat(9), sent: fc.integer({ min: 1, max: 9 }) }), { maxLength: 20 });
    fc.assert(
      fc.property(chunks, (all) => {
        let [end, next, reported, sent, isFirst] = [0n, 0n, 0n, 0n, true];
        for (const chunk of all) {
          const offset = end + BigInt(chunk.lost);
          const gap = gapBefore({ next, hasBegun: !isFirst }, { offset, isCut: isFirst && chunk.lost > 0 });
          expect(gap.kind).toBe(chunk.lost === 0 ? "none" : isFirst ? "beginning" : "between");
          if (gap.kind !== "none") reported += gap.bytes;
          sent += BigInt(chunk.sent);
          end = offset + BigInt(chunk.sent);
          next = end;
          isFirst = false;
        }
        expect(reported + sent).toBe(end);
      }),
    );
  });

  it("should go by the sender's word where the reader does not know where it begins", () => {
    const unknown = { next: null, hasBegun: false };
    expect(gapBefore(unknown, { offset: 7n, isCut: true })).toEqual({ kind: "beginning", bytes: 7n });
    expect(gapBefore(unknown, { offset: 7n, isCut: false })).toEqual({ kind: "none" });
    expect(gapBefore(unknown, { offset: 0n, isCut: true })).toEqual({ kind: "none" });
  });

  it("should report nothing for what comes again", () => {
    expect(gapBefore({ next: 9n, hasBegun: true }, { offset: 5n, isCut: false })).toEqual({ kind: "none" });
  });
});
