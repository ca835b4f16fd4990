import { describe, expect, it } from "@jest/globals";
import { seededRandom } from "@rollcall/domain";
import { type ReturnPlan, simulateReturn } from "./return-model.ts";

const PLAN: Omit<ReturnPlan, "random"> = {
  ...{ agents: 10_000, replicas: 2, cores: 2, admitMs: 1, sendAwayMs: 0.3, heartbeatMs: 0.04 },
  ...{ intervalMs: 15_000, hellosPerSecond: 3_000, helloQueue: 2_000 },
};

const play = (plan: Partial<ReturnPlan> = {}) => simulateReturn({ ...PLAN, random: seededRandom(7), ...plan });

describe("simulateReturn()", () => {
  it("should take as long as the CPU time of all agents if none is sent away", () => {
    const { allInMs, attemptsEach } = play({ helloQueue: 10_000, hellosPerSecond: 10_000 });
    // All agents together cost 5 s of two cores, and the last one arrives after 4 s.
    expect(allInMs).toBeGreaterThanOrEqual(5_000);
    expect(allInMs).toBeLessThan(5_300);
    expect(attemptsEach).toBe(1);
  });

  it("should return the same result for the same seed", () => {
    expect(play()).toEqual(play());
  });

  it("should end with the arrival of the last agent if there is enough CPU", () => {
    const { allInMs, longestWaitMs } = play({ agents: 100 });
    expect(allInMs).toBeLessThan(4_200);
    expect(longestWaitMs).toBeLessThan(200);
  });

  it("should send away agents that it cannot accept, and connect all of them soon after the CPU time that they need", () => {
    const { allInMs, attemptsEach, longestWaitMs } = play({ agents: 100_000, replicas: 6, admitMs: 2.5 });
    const leastMs = (100_000 * 2.5) / 2;
    expect(allInMs).toBeGreaterThan(leastMs);
    expect(allInMs).toBeLessThan(leastMs * 2);
    expect(attemptsEach).toBeGreaterThan(1.5);
    expect(attemptsEach).toBeLessThan(6);
    // No more agents wait than fit into the queues, and sending agents away uses up to half of the CPU.
    expect(longestWaitMs).toBeLessThan(6 * 2_000 * 2.5 + 5_000);
  });

  it("should report agents that never connect because heartbeats use all CPU", () => {
    expect(play({ agents: 1_000, heartbeatMs: 100, cores: 1 }).allInMs).toBeNull();
  });
});
