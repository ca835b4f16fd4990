import { describe, expect, it } from "@jest/globals";
import type { RebalanceLimits } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit/time";
import { liveReplicas } from "../testing/held-node.ts";
import { Rebalancer } from "./rebalancer.ts";

/** Ten moves a second, and nothing is too little to be worth one. */
const LIMITS: RebalanceLimits = {
  tolerance: 0,
  leastSessions: 0,
  partPerSecond: 0,
  leastPerSecond: 10,
  mostPerSecond: 10,
};

/** A replica with so many sessions beside another one that has none; at its last renewal it had none either. */
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
  it("should count its own sessions as they are, and those of others as last reported", async () => {
    const { rebalancer, clock, asked } = setUp(100);
    await rebalancer.turn();
    clock.advance(1_000);
    await rebalancer.turn();
    expect(asked).toEqual([1, 10]);
  });

  it("should not make up for a turn that was held up", async () => {
    const { rebalancer, clock, asked } = setUp(10_000);
    await rebalancer.turn();
    clock.advance(60_000);
    await rebalancer.turn();
    expect(asked).toEqual([1, 30]);
  });

  it("should ask nothing while it may take no agents in, of the record neither", async () => {
    const { rebalancer, replica, asked, refreshes } = setUp(100);
    replica.mayOpen = false;
    await rebalancer.turn();
    expect([asked, refreshes()]).toEqual([[], 0]);
  });
});
