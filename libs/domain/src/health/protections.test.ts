import { describe, expect, it } from "@jest/globals";
import { ObservedTime } from "./observed-time.ts";

const TICK_MS = 100;
const MAX_GAP_MS = 200;

/** Tick until `untilMs` with these protections. Returns how much of this time was observed. */
function observedMs(protections: readonly (readonly [atMs: number, forMs: number])[], untilMs: number): number {
  const time = new ObservedTime({ startMs: 0, maxGapMs: MAX_GAP_MS });
  for (let nowMs = TICK_MS; nowMs <= untilMs; nowMs += TICK_MS) {
    time.advance(nowMs);
    for (const [atMs, forMs] of protections) if (atMs === nowMs) time.standStill(nowMs, forMs);
  }
  return time.at(untilMs);
}

describe("several times in which the clock stands still", () => {
  it.each<[string, readonly (readonly [number, number])[], number]>([
    ["one", [[1_000, 5_000]], 5_000],
    [
      "a shorter one within a longer one",
      [
        [1_000, 5_000],
        [2_000, 500],
      ],
      5_000,
    ],
    [
      "a longer one that begins later",
      [
        [1_000, 500],
        [1_200, 5_000],
      ],
      5_200,
    ],
    [
      "two that overlap",
      [
        [1_000, 2_000],
        [2_000, 2_000],
      ],
      3_000,
    ],
    [
      "two apart",
      [
        [1_000, 1_000],
        [5_000, 2_000],
      ],
      3_000,
    ],
    [
      "one of no time within a longer one",
      [
        [1_000, 5_000],
        [1_100, 0],
      ],
      5_000,
    ],
  ])("should grant %s as a whole", (_, protections, grantedMs) => {
    expect(observedMs(protections, 20_000)).toBe(20_000 - grantedMs);
  });

  it("should never end early because of a hundred shorter protections", () => {
    const shorter = Array.from({ length: 100 }, (_, index) => [1_000 + index * TICK_MS, TICK_MS] as const);
    expect(observedMs([[1_000, 11_000], ...shorter], 20_000)).toBe(9_000);
  });

  it("should observe time again after each of a hundred protections", () => {
    const each = Array.from({ length: 100 }, (_, index) => [(index + 1) * 1_000, 500] as const);
    expect(observedMs(each, 101_000)).toBe(101_000 - 100 * 500);
  });
});
