import { describe, expect, it } from "@jest/globals";
import { FloodBudget, type Nuisance } from "./flood-budget.ts";

const MIB = 1_048_576;
/** A process that has run for a while. */
const START_MS = 1_000_000;

/** How many of a kind come at one moment before one is too many. */
function burst(nuisance: Nuisance, budget = new FloodBudget(), nowMs = START_MS): number {
  let count = 0;
  while (!budget.spend(nuisance, nowMs)) count += 1;
  return count;
}

describe("FloodBudget", () => {
  it.each([
    ["ping", 2_000],
    ["reset", 400],
    ["settings", 100],
  ] as const)("should let so many come at once: %s", (nuisance, most) => {
    expect(burst(nuisance)).toBe(most);
  });

  it("should let as many come as time pays for, without an end", () => {
    const budget = new FloodBudget();
    for (let ms = START_MS; ms < START_MS + 600_000; ms += 25) {
      expect(budget.spend("reset", ms)).toBe(false);
    }
  });

  it("should owe nothing more after a while", () => {
    const budget = new FloodBudget();
    burst("ping", budget);
    expect(burst("ping", budget, START_MS + 60_000)).toBe(2_000);
  });

  it("should not mind a clock that stands still or goes back", () => {
    const budget = new FloodBudget();
    expect(budget.spend("ping", START_MS)).toBe(false);
    expect(budget.spend("ping", START_MS - 5_000)).toBe(false);
    expect(burst("ping", budget, START_MS)).toBe(1_998);
  });

  it("should allow bytes by time and by streams, and no more", () => {
    const budget = new FloodBudget();
    expect(budget.look(100 * MIB, 0, START_MS)).toBe(false);
    expect(budget.look(101 * MIB, 0, START_MS)).toBe(false);
    expect(budget.look(101 * MIB + 1, 0, START_MS)).toBe(true);
    const paid = new FloodBudget();
    paid.look(0, 0, START_MS);
    paid.streamOpened();
    expect(paid.look(2.125 * MIB + 0.1875 * MIB, 1, START_MS + 1_000)).toBe(false);
    expect(paid.look(2.125 * MIB + 0.1875 * MIB + 1, 1, START_MS + 1_000)).toBe(true);
  });

  it("should never end a connection that uploads the largest messages one after the other", () => {
    const budget = new FloodBudget();
    for (let count = 1; count < 1_000; count += 1) {
      budget.streamOpened();
      expect(budget.look(count * 1.1 * MIB, 1, START_MS)).toBe(false);
    }
  });
});
