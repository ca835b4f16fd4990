import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { isoTime } from "./iso-time.ts";

describe("isoTime()", () => {
  it.each([0, 1, 951_782_400_000, 1_709_164_799_999, 4_107_542_399_000, -1])("should write %s as Date does", (atMs) => {
    expect(isoTime(atMs)).toBe(new Date(atMs).toISOString());
  });

  it("should agree with Date for every time of four-digit years", () => {
    const [first, last] = [Date.UTC(1600, 0, 1), Date.UTC(9999, 11, 31)];
    fc.assert(
      fc.property(fc.integer({ min: first, max: last }), (atMs) => {
        expect(isoTime(atMs)).toBe(new Date(atMs).toISOString());
      }),
      { numRuns: 1_000 },
    );
  });
});
