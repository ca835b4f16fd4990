import { describe, expect, it } from "@jest/globals";
import { FloodBudget, type Nuisance } from "./flood-budget.ts";

const MIB = 1_048_576;
const MUCH = 65_536;
/** The time when a test starts, as in a process that has been running for a while. */
const START_MS = 1_000_000;

/** Count how many nuisances of a kind are accepted at one moment. */
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
  ] as const)("should bound how many are served at once: %s", (nuisance, most) => {
    expect(burst(nuisance)).toBe(most);
  });

  it("should allow a sustained rate indefinitely", () => {
    const budget = new FloodBudget();
    for (let ms = START_MS; ms < START_MS + 600_000; ms += 25) {
      expect(budget.spend("reset", ms)).toBe(false);
    }
  });

  it("should have no debt after a while", () => {
    const budget = new FloodBudget();
    burst("ping", budget);
    expect(burst("ping", budget, START_MS + 60_000)).toBe(2_000);
  });

  it("should tolerate a clock that stands still or goes back", () => {
    const budget = new FloodBudget();
    expect(budget.spend("ping", START_MS)).toBe(false);
    expect(budget.spend("ping", START_MS - 5_000)).toBe(false);
    expect(burst("ping", budget, START_MS)).toBe(1_998);
  });

  it("should bound bytes by time and by streams", () => {
    const budget = new FloodBudget();
    expect(budget.look(100 * MIB, 0, START_MS)).toBe("fine");
    expect(budget.look(100 * MIB + MUCH, 0, START_MS)).toBe("fine");
    expect(budget.look(100 * MIB + MUCH + 1, 0, START_MS)).toBe("much");
    expect(budget.look(100.25 * MIB, 0, START_MS)).toBe("much");
    expect(budget.look(100.25 * MIB + 1, 0, START_MS)).toBe("flood");
    const paid = new FloodBudget();
    paid.look(0, 0, START_MS);
    paid.streamOpened();
    const most = (0.25 + 1.125 + 0.1875) * MIB;
    expect(paid.look(most, 1, START_MS + 1_000)).toBe("much");
    expect(paid.look(most + 1, 1, START_MS + 1_000)).toBe("flood");
  });

  it("should allow the largest message of an open stream over several checks", () => {
    const budget = new FloodBudget(START_MS);
    budget.streamOpened();
    for (let bytes = 0; bytes <= 1.125 * MIB; bytes += MUCH / 2) {
      expect(budget.look(bytes, 1, START_MS)).toBe("fine");
    }
    expect(budget.look(1.125 * MIB + MUCH, 0, START_MS)).toBe("fine");
    expect(budget.look(1.125 * MIB + MUCH + MIB, 0, START_MS)).toBe("flood");
  });

  it("should not count explained bytes, whether explained before or after the check", () => {
    const budget = new FloodBudget(START_MS);
    for (let count = 1; count < 1_000; count += 1) {
      if (count % 2 === 0) budget.explain(MUCH);
      expect(budget.look(count * MUCH, 0, START_MS)).toBe("fine");
      if (count % 2 === 1) budget.explain(MUCH);
    }
    expect(budget.look(999 * MUCH + MIB / 4, 0, START_MS)).toBe("much");
    expect(budget.look(999 * MUCH + MIB / 4 + 1, 0, START_MS)).toBe("flood");
  });

  it("should not use explained bytes as credit for others", () => {
    const budget = new FloodBudget(START_MS);
    budget.look(16 * MIB, 16, START_MS - 1);
    budget.explain(16 * MIB);
    budget.look(16 * MIB, 0, START_MS);
    expect(budget.look(16.25 * MIB + 1, 0, START_MS)).toBe("flood");
  });

  it("should count from the first byte if the start is known", () => {
    const budget = new FloodBudget(START_MS);
    expect(budget.isClear).toBe(true);
    expect(budget.look(MIB / 4 + 1, 0, START_MS)).toBe("flood");
    expect(budget.isClear).toBe(false);
  });

  it("should not count bytes before the first check, even in a young process", () => {
    const budget = new FloodBudget();
    expect(budget.look(100 * MIB, 0, 1)).toBe("fine");
    expect(budget.look(100 * MIB + MIB / 4, 0, 1)).toBe("much");
    expect(budget.look(100 * MIB + MIB / 4 + 1, 0, 1)).toBe("flood");
  });

  it("should only report much if more bytes have arrived", () => {
    const budget = new FloodBudget(START_MS);
    expect(budget.look(2 * MUCH, 0, START_MS)).toBe("much");
    expect(budget.look(2 * MUCH, 0, START_MS)).toBe("fine");
  });

  it("should never end a connection that uploads the largest messages one after the other", () => {
    const budget = new FloodBudget();
    for (let count = 1; count < 1_000; count += 1) {
      budget.streamOpened();
      expect(budget.look(count * 1.1 * MIB, 1, START_MS)).toBe("fine");
    }
  });
});
