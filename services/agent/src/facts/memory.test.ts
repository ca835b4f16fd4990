import { describe, expect, it } from "@jest/globals";
import { parseMemInfo } from "./memory.ts";

describe("parseMemInfo()", () => {
  it("should read total and available memory in bytes", () => {
    expect(parseMemInfo("MemTotal: 16 kB\nMemFree: 1 kB\nMemAvailable: 8 kB\nCached: 2 kB\n")).toEqual({
      totalBytes: 16_384,
      availableBytes: 8_192,
    });
  });

  it("should estimate the available memory on kernels that do not report it", () => {
    expect(parseMemInfo("MemTotal: 16 kB\nMemFree: 1 kB\nCached: 2 kB\n").availableBytes).toBe(3_072);
  });

  it("should return nothing for an empty file", () => {
    expect(parseMemInfo("")).toEqual({ totalBytes: undefined, availableBytes: undefined });
  });
});
