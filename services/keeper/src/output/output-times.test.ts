import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { beginSince, MOST_MARKS, markAt, marksOf, needsMark, type TimeMark, thinMarks } from "./output-times.ts";

/** A write: its number of bytes, and the time since the previous write. */
const WRITES = fc.array(fc.record({ afterMs: fc.nat(3_000), bytes: fc.integer({ min: 1, max: 9 }) }), {
  maxLength: 60,
});

/** The marks of some writes, and when each byte was actually written. */
function written(writes: readonly { readonly afterMs: number; readonly bytes: number }[]) {
  const marks: TimeMark[] = [];
  const truth: number[] = [];
  let nowMs = 1_000_000;
  for (const { afterMs, bytes } of writes) {
    nowMs += afterMs;
    if (needsMark(marks.at(-1) ?? null, nowMs)) marks.push(markAt(truth.length, nowMs));
    for (let count = 0; count < bytes; count += 1) truth.push(nowMs);
  }
  return { marks, truth };
}

describe("needsMark()", () => {
  it.each([
    [null, 5, true],
    [markAt(0, 5_000), 5_000, false],
    [markAt(0, 5_000), 5_999, false],
    [markAt(0, 5_000), 6_000, true],
    [markAt(0, 5_000), 4_999, true],
  ])("should decide for %j at %i: %s", (last, nowMs, expected) => {
    expect(needsMark(last, nowMs)).toBe(expected);
  });
});

describe("beginSince()", () => {
  it("should include everything written since, and at most a second of earlier output", () => {
    fc.assert(
      fc.property(WRITES, fc.integer({ min: -2_000, max: 100_000 }), (writes, afterMs) => {
        const { marks, truth } = written(writes);
        const sinceMs = 1_000_000 + afterMs;
        const { offset, isCut } = beginSince(marks, sinceMs, { begin: 0, end: truth.length });
        expect(isCut).toBe(false);
        expect(truth.slice(0, offset).every((atMs) => atMs < sinceMs)).toBe(true);
        expect(truth.slice(offset).every((atMs) => atMs > sinceMs - 1_000)).toBe(true);
      }),
    );
  });

  it.each([
    ["no time is known", [], { offset: 10, isCut: true }],
    ["everything was written before", [markAt(0, 1_000)], { offset: 90, isCut: false }],
    ["its beginning is gone", [markAt(0, 9_000), markAt(50, 20_000)], { offset: 10, isCut: true }],
    ["it begins inside the stream", [markAt(0, 1_000), markAt(50, 9_000)], { offset: 50, isCut: false }],
    ["the output before it has no time", [markAt(50, 9_000)], { offset: 10, isCut: true }],
  ])("should say where to begin, and whether something is missing, if %s", (_, marks, expected) => {
    expect(beginSince(marks, 9_000, { begin: 10, end: 90 })).toEqual(expected);
  });
});

describe("thinMarks()", () => {
  it("should keep the newest marks, and make room for half of the maximum", () => {
    const marks = Array.from({ length: MOST_MARKS }, (_, at) => markAt(at, at * 1_000));
    const thinned = thinMarks(marks, 0);
    expect(thinned.length).toBeLessThanOrEqual(MOST_MARKS * 0.75);
    expect(thinned.slice(-4_096)).toEqual(marks.slice(-4_096));
    // Each mark still bounds the arrival time of its last byte.
    expect(thinned[0]).toEqual({ offset: 0, atMs: 0, untilMs: 2_000 });
  });

  it("should drop marks of removed output, except the mark of the oldest kept bytes", () => {
    const marks = [markAt(0, 0), markAt(10, 2_000), markAt(20, 4_000)];
    expect(thinMarks(marks, 15)).toEqual(marks.slice(1));
  });
});

describe("marksOf()", () => {
  it("should give each byte a time within a second of when it was written", () => {
    fc.assert(
      fc.property(WRITES, fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 20 }), (writes, most, size) => {
        const { marks, truth } = written(writes);
        for (let from = 0; from < truth.length; ) {
          const to = Math.min(truth.length, from + size);
          const piece = marksOf(marks, { from, to, most });
          expect(piece.marks.length).toBeLessThanOrEqual(most);
          expect(piece.end).toBeGreaterThan(from);
          for (let at = from; at < piece.end; at += 1) {
            const atMs = piece.marks.findLast(({ offset }) => offset <= at)?.atMs ?? Number.NaN;
            expect((truth[at] ?? 0) - atMs).toBeGreaterThanOrEqual(0);
            expect((truth[at] ?? 0) - atMs).toBeLessThan(1_000);
          }
          from = piece.end;
        }
      }),
    );
  });
});
