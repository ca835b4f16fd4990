import { describe, expect, it } from "@jest/globals";
import { seededRandom } from "@rollcall/domain";
import { type ReturnPlan, simulateReturn } from "./return-model.ts";

const PLAN: Omit<ReturnPlan, "random"> = {
  ...{ agents: 10_000, replicas: 2, cores: 2, takeInMs: 1, sendAwayMs: 0.3, heartbeatMs: 0.04 },
  ...{ intervalMs: 15_000, hellosPerSecond: 3_000, helloQueue: 2_000 },
};

const play = (plan: Partial<ReturnPlan> = {}) => simulateReturn({ ...PLAN, random: seededRandom(7), ...plan });

describe("simulateReturn()", () => {
  it("should take as long as the CPU of all agents where none is sent away", () => {
    const { allInMs, attemptsEach } = play({ helloQueue: 10_000, hellosPerSecond: 10_000 });
    // They cost 5 s of two cores, and the last comes after 4 s.
    expect(allInMs).toBeGreaterThanOrEqual(5_000);
    expect(allInMs).toBeLessThan(5_300);
    expect(attemptsEach).toBe(1);
  });

  it("should be the same for the same seed", () => {
    expect(play()).toEqual(play());
  });

  it("should wait for the last to come where CPU is plenty", () => {
    const { allInMs, longestWaitMs } = play({ agents: 100 });
    expect(allInMs).toBeLessThan(4_200);
    expect(longestWaitMs).toBeLessThan(200);
  });

  it("should send away whom it cannot take, and have all of them in soon after the CPU that it takes", () => {
    const { allInMs, attemptsEach, longestWaitMs } = play({ agents: 100_000, replicas: 6, takeInMs: 2.5 });
    const leastMs = (100_000 * 2.5) / 2;
    expect(allInMs).toBeGreaterThan(leastMs);
    expect(allInMs).toBeLessThan(leastMs * 2);
    expect(attemptsEach).toBeGreaterThan(1.5);
    expect(attemptsEach).toBeLessThan(6);
    // No more wait than the queues hold, with half of the CPU for those who are sent away.
    expect(longestWaitMs).toBeLessThan(6 * 2_000 * 2.5 + 5_000);
  });

  it("should say so where heartbeats leave nothing for those who are not in yet", () => {
    expect(play({ agents: 1_000, heartbeatMs: 100, cores: 1 }).allInMs).toBeNull();
  });
});
