import { describe, expect, it } from "@jest/globals";
import { returnAimMs } from "./aims.ts";

describe("returnAimMs()", () => {
  it.each([
    [100, 8_000],
    [10_000, 8_000],
    [20_000, 60_000],
    [100_000, 300_000],
    [200_000, 600_000],
  ])("should give a fleet of %i so long", (agents, ms) => {
    expect(returnAimMs(agents)).toBe(ms);
  });
});
