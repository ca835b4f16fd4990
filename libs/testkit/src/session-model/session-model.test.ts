import { describe, expect, it } from "@jest/globals";
import { seededRandom } from "../seeded-random.ts";
import { explore, wander } from "./explore.ts";

const SEED = Math.floor(Math.random() * 2 ** 31);
const SMALL = { streams: 2, beats: 1, epochs: 3 };
const LARGE = { streams: 4, beats: 3, epochs: 8 };
const WALKS = 150;
const STEPS = 80;

describe("the session protocol, in every order of everything", () => {
  it("should keep its invariants in every state that is near", () => {
    const { violation, states } = explore(SMALL, 30_000);
    expect({ violation, states }).toEqual({ violation: null, states: 30_000 });
  });

  it("should keep its invariants in states that are far", () => {
    for (let seed = SEED; seed < SEED + WALKS; seed += 1) {
      const violation = wander(LARGE, { steps: STEPS, random: seededRandom(seed) });
      expect({ seed, violation }).toEqual({ seed, violation: null });
    }
  });

  it.each([
    ["compare-and-set", "only the owner writes"],
    ["epoch-of-adoption", "an epoch has one owner"],
    ["closed-while-opening", "an ended stream stays ended"],
  ] as const)("should need its rule: %s", (missing, invariant) => {
    // Always the same walks, so that chance decides nothing.
    const found = Array.from({ length: WALKS }, (_, seed) => {
      const random = seededRandom(seed);
      return wander({ ...SMALL, missing }, { steps: STEPS, random })?.invariant ?? null;
    });
    expect(found).toContain(invariant);
  });
});
