import { describe, expect, it } from "@jest/globals";
import { explore, wander } from "./explore.ts";

const SEED = 1;
const SMALL = { streams: 2, beats: 1, epochs: 3 };
const LARGE = { streams: 4, beats: 3, epochs: 8 };
const STATES = 2_000;
const WALKS = 400;
const STEPS = 80;

describe("the shipped session protocol, in every order of events", () => {
  it("should keep its invariants in every nearby state", async () => {
    const { violation, states } = await explore(SMALL, STATES);
    expect({ violation, states }).toEqual({ violation: null, states: STATES });
  });

  it("should keep its invariants in distant states, and settle from there", async () => {
    for (let seed = SEED; seed < SEED + WALKS; seed += 1) {
      const violation = await wander(LARGE, { steps: STEPS, seed });
      expect({ seed, violation }).toEqual({ seed, violation: null });
    }
  });

  it.each([
    ["epoch-checked", /is fenced/],
    ["adoption-fences", /has a second owner/],
    ["one-event", /changes nothing/],
  ] as const)("should depend on the store's rule: %s", async (broken, complaint) => {
    // Always the same walks, so that the test is deterministic.
    for (let seed = 0; seed < WALKS; seed += 1) {
      const violation = await wander({ ...SMALL, broken }, { steps: STEPS, seed });
      if (violation !== null && complaint.test(violation.invariant)) return;
    }
    throw new Error(`not noticed in ${WALKS} walks`);
  });
});
