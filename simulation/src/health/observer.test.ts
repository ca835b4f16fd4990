import { describe, expect, it } from "@jest/globals";
import { Observer } from "./invariants.ts";
import { LEASE_EXPIRY_MS } from "./simulation-options.ts";

const NODE = 0;
const DOUBT_MS = LEASE_EXPIRY_MS;
const HELD_AGAIN_MS = DOUBT_MS + 30_000;

/**
 * An observer whose lease was renewed only at 0: it is in doubt from DOUBT_MS until the test renews it at
 * HELD_AGAIN_MS.
 */
function inDoubt(): Observer {
  const observer = new Observer(1);
  observer.renewed(0, 0, true);
  return observer;
}

describe("Observer", () => {
  it.each([
    [3_000, 1_000],
    [1_000, 3_000],
  ])(
    "should keep the longer of two grace periods, of %d and then %d ms, while its lease is in doubt",
    (first, second) => {
      const observer = inDoubt();
      observer.heard(NODE, DOUBT_MS + 10_000, -first);
      observer.heard(NODE, DOUBT_MS + 15_000, -second);
      observer.renewed(HELD_AGAIN_MS, HELD_AGAIN_MS, true);
      expect(observer.mostSilence(NODE, HELD_AGAIN_MS + 1_000).ms).toBe(1_000 - 3_000);
      expect(observer.leastSilence(NODE, HELD_AGAIN_MS + 1_000).ms).toBe(1_000 - 3_000);
    },
  );

  it("should let a later grace period replace a longer one that is used up, while it is sure of its lease", () => {
    const observer = inDoubt();
    observer.heard(NODE, 1_000, -3_000);
    observer.heard(NODE, 5_000, -1_000);
    expect(observer.mostSilence(NODE, 6_000).ms).toBe(0);
  });

  it("should count no silence during a doubt, and all of it before and after", () => {
    const observer = inDoubt();
    observer.heard(NODE, DOUBT_MS - 4_000);
    expect(observer.mostSilence(NODE, DOUBT_MS + 20_000)).toEqual({ ms: 4_000, stretches: 1 });
    observer.renewed(HELD_AGAIN_MS, HELD_AGAIN_MS, true);
    expect(observer.mostSilence(NODE, HELD_AGAIN_MS + 1_000)).toEqual({ ms: 5_000, stretches: 1 });
  });
});
