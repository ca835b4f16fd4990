import { describe, it } from "@jest/globals";
import fc from "fast-check";
import { WorkSimulation } from "../../testing/work-simulation.ts";

describe("WorkMemory in a random walk", () => {
  it("should never grant too much, place on a node that takes no work, or want two executions in one replica", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 30 }), (seed) => {
        const simulation = new WorkSimulation(seed);
        for (let step = 0; step < 120; step += 1) simulation.step();
        simulation.heal();
      }),
      { numRuns: 40 },
    );
  });
});
