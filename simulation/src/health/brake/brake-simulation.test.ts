import { describe, expect, it } from "@jest/globals";
import { simulateBrake } from "./brake-simulation.ts";

const SEED = 1;

describe("simulateBrake()", () => {
  it.each([SEED, SEED + 1])("should hold back storms and nothing else, seed %d", async (seed) => {
    const { violation, releases } = await simulateBrake({ seed, durationMs: 3 * 3_600_000 });
    expect(violation).toBeNull();
    expect(releases).toBeGreaterThan(0);
  });
});
