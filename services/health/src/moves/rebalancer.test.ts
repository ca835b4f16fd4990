import { describe, expect, it } from "@jest/globals";
import type { RebalanceLimits } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit/time";
import { liveReplicas } from "../testing/live-node.ts";
import { Rebalancer } from "./rebalancer.ts";

/** Limits of a test: ten moves a second, and any surplus is worth a move. */
const LIMITS: RebalanceLimits = {
  tolerance: 0,
  leastSessions: 0,
  partPerSecond: 0,
  leastPerSecond: 10,
  mostPerSecond: 10,
};

/**
 * Create a replica with `sessions` sessions. Neither this replica nor the other one had a session
 * at its last lease renewal.
 */
function setUp(sessions: number) {
  const clock = new ManualClock();
  const replica = { instance: "own", mayOpen: true, nodes: { sessions } };
  const asked: number[] = [];
  let refreshes = 0;
  const rebalancer = new Rebalancer({
    replica,
    peers: {
      refresh: async () => {
        refreshes += 1;
      },
      replicas: liveReplicas("own", "other"),
    },
    mover: {
      leaving: () => 0,
      ask: (count: number) => {
        asked.push(count);
        return count;
      },
    },
    clock,
    log: silentLogger,
    random: () => 0,
    onAsked: () => {},
    limits: LIMITS,
  });
  return { rebalancer, clock, replica, asked, refreshes: () => refreshes };
}

describe("Rebalancer.turn()", () => {
  it("should use its own current sessions, and those of others as last reported", async () => {
    const { rebalancer, clock, asked } = setUp(100);
    await rebalancer.turn();
    clock.advance(1_000);
    await rebalancer.turn();
    expect(asked).toEqual([1, 10]);
  });

  it("should not make up for a delayed tick", async () => {
    const { rebalancer, clock, asked } = setUp(10_000);
    await rebalancer.turn();
    clock.advance(60_000);
    await rebalancer.turn();
    expect(asked).toEqual([1, 30]);
  });

  it("should do nothing, not even read the store, while it must not admit agents", async () => {
    const { rebalancer, replica, asked, refreshes } = setUp(100);
    replica.mayOpen = false;
    await rebalancer.turn();
    expect([asked, refreshes()]).toEqual([[], 0]);
  });
});
