import { describe, expect, it } from "@jest/globals";
import { parseCount, parseCpuList, parseKibibytes, parseNumber } from "./parse-text.ts";

describe("parseCount()", () => {
  it.each([
    ["12\n", 12],
    [" 0 ", 0],
    ["-1", undefined],
    ["1.5", undefined],
    ["[N/A]", undefined],
    ["99999999999999999999", undefined],
    [undefined, undefined],
  ])("should read %j as %s", (text, count) => {
    expect(parseCount(text)).toBe(count);
  });
});

describe("parseNumber()", () => {
  it.each([
    ["36.5", 36.5],
    ["-12", -12],
    ["nan", undefined],
    ["1e9", undefined],
  ])("should read %j as %s", (text, number) => {
    expect(parseNumber(text)).toBe(number);
  });
});

describe("parseCpuList()", () => {
  it.each([
    ["0-3,8,10-11\n", [0, 1, 2, 3, 8, 10, 11]],
    ["0", [0]],
    ["", []],
    ["3-1", []],
    ["0-99999999", []],
    ["a-b,2", [2]],
  ])("should read %j", (text, cpus) => {
    expect(parseCpuList(text)).toEqual(cpus);
  });
});

describe("parseKibibytes()", () => {
  it("should only accept the kernel's unit", () => {
    expect(parseKibibytes("4 kB")).toBe(4096);
    expect(parseKibibytes("4 MB")).toBeUndefined();
    expect(parseKibibytes(undefined)).toBeUndefined();
  });
});
