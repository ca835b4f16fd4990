import { describe, expect, it } from "@jest/globals";
import { joinParts } from "./log-parts.ts";

const part = (atMs: number, text: string) => ({ atMs, data: Buffer.from(text) });

describe("joinParts()", () => {
  it("should join output written within a second, and keep the order otherwise", () => {
    const joined = joinParts([part(1_000, "a"), part(1_999, "b"), part(2_000, "c"), part(500, "d"), part(900, "e")]);
    expect(joined.map(({ atMs, data }) => [atMs, Buffer.from(data).toString()])).toEqual([
      [1_000, "ab"],
      [2_000, "c"],
      [500, "de"],
    ]);
  });
});
