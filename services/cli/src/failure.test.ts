import { describe, expect, it } from "@jest/globals";
import { momentIn, parseCount, parseDurationMs, pickWord, pickWords, systemCodeOf, UsageError } from "./failure.ts";

describe("pickWord()", () => {
  it("should ignore case", () => {
    expect(pickWord("output", "JSON", ["json", "yaml"])).toBe("json");
  });

  it("should name the option, the value and the choices", () => {
    expect(() => pickWord("filter-approval", "x", ["approved", "pending", "rejected"])).toThrow(
      new UsageError(`cannot use 'x' as filter-approval value, should be one of: ["approved" "pending" "rejected"]`),
    );
  });
});

describe("pickWords()", () => {
  it("should split at commas, and return nothing for an empty string", () => {
    expect(pickWords("show", "a, b,", ["a", "b"])).toEqual(["a", "b"]);
    expect(pickWords("show", "", ["a", "b"])).toEqual([]);
  });
});

describe("parseCount()", () => {
  it.each(["-1", "1.5", "x", "", "1e3", "9999999999"])("should refuse %s", (text) => {
    expect(() => parseCount("limit", text, 0)).toThrow(UsageError);
  });

  it("should accept the minimum and refuse less", () => {
    expect(parseCount("count", "1", 1)).toBe(1);
    expect(() => parseCount("count", "0", 1)).toThrow(UsageError);
  });
});

describe("parseDurationMs()", () => {
  it.each([
    ["500ms", 500],
    ["15s", 15_000],
    ["1.5m", 90_000],
    ["1h", 3_600_000],
    ["2", 2000],
    ["1h30m", 5_400_000],
    ["2 days", 172_800_000],
  ])("should read %s", (text, ms) => {
    expect(parseDurationMs("timeout", text)).toBe(ms);
  });

  it.each(["", "0", "0s", "-1s", "1y", "soon", "1us"])("should refuse %j", (text) => {
    expect(() => parseDurationMs("timeout", text)).toThrow(UsageError);
  });
});

describe("momentIn()", () => {
  it.each([
    ["1h30m", 4_600_000],
    ["2026", null],
    ["0s", null],
    ["1970-01-01T00:00:05Z", 5_000],
  ])("should read %j", (text, atMs) => {
    expect(momentIn(text, 10_000_000)).toBe(atMs);
  });
});

describe("systemCodeOf()", () => {
  it("should only return system error codes", () => {
    expect(systemCodeOf(Object.assign(new Error("x"), { code: "ENOENT" }))).toBe("ENOENT");
    expect(systemCodeOf(Object.assign(new Error("x"), { code: 14 }))).toBeNull();
    expect(systemCodeOf(null)).toBeNull();
  });
});
