import { describe, expect, it } from "@jest/globals";
import { simulateWork } from "./simulate-work.ts";

const SEED = 1;
const MINUTE_MS = 60_000;
const WORLD = { agents: 40, replicas: 3, durationMs: 15 * MINUTE_MS, faultEveryMs: 8_000 };

describe("simulateWork()", () => {
  it.each([SEED])("should keep every invariant of work under every fault, seed %d", async (seed) => {
    const result = await simulateWork({ ...WORLD, seed });
    expect(result.violation).toBeNull();
  });

  it("should repeat a run by its seed", async () => {
    const world = { ...WORLD, agents: 10, durationMs: 3 * MINUTE_MS, seed: SEED };
    expect(await simulateWork(world)).toEqual(await simulateWork(world));
  });
});
